package pt_neural;

import java.io.IOException;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.Scorer;
import org.apache.lucene.search.Weight;

/** How often a query occurs in the collection, counted document by document without keeping any. */
public final class SpanFrequencies {
    private static final long UNITS = 1L << 20;

    private SpanFrequencies() {}

    /**
     * The number of documents that match, and the sum of their scores in units of 2^-20.
     *
     * <p>Each score is rounded before it is added, and sums of integers do not depend on their order: the result is the
     * same however the documents are divided into segments and indexes.
     */
    public static long[] count(IndexSearcher searcher, Query query) throws IOException {
        Weight weight = searcher.createWeight(searcher.rewrite(query), ScoreMode.COMPLETE, 1f);
        long[] counts = new long[2];
        for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
            Scorer scorer = weight.scorer(leaf);
            if (scorer == null) {
                continue;
            }
            DocIdSetIterator documents = scorer.iterator();
            while (documents.nextDoc() != DocIdSetIterator.NO_MORE_DOCS) {
                counts[0]++;
                counts[1] += Math.round((double) scorer.score() * UNITS);
            }
        }
        return counts;
    }
}
