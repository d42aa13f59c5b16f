package pt_neural;

import java.util.HashMap;
import java.util.Map;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.CollectionStatistics;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.TermStatistics;
import org.apache.lucene.util.BytesRef;

/** Searches one shard of a collection, but scores by the statistics of the whole collection. */
public final class GlobalStatistics extends IndexSearcher {
    private final CollectionStatistics collection;
    private final Map<BytesRef, TermStatistics> terms = new HashMap<>();

    /**
     * @param shard the index to search
     * @param collection of the field: the number of documents, of documents with the field, of its term occurrences, and
     *     of its pairs of a document and a distinct term
     * @param terms all terms of the queries to come
     * @param documents the number of documents with each term
     * @param occurrences the number of occurrences of each term
     */
    public GlobalStatistics(
            IndexReader shard, String field, long[] collection, String[] terms, long[] documents, long[] occurrences) {
        super(shard);
        this.collection = new CollectionStatistics(field, collection[0], collection[1], collection[2], collection[3]);
        for (int i = 0; i < terms.length; i++) {
            if (documents[i] > 0) {
                BytesRef term = new BytesRef(terms[i]);
                this.terms.put(term, new TermStatistics(term, documents[i], occurrences[i]));
            }
        }
    }

    @Override
    public CollectionStatistics collectionStatistics(String field) {
        if (!field.equals(collection.field())) {
            throw new IllegalArgumentException("no global statistics of field ".concat(field));
        }
        return collection;
    }

    /** Statistics of a term; those that a query brings along have a negative frequency and are global already. */
    @Override
    public TermStatistics termStatistics(Term term, int documents, long occurrences) {
        if (occurrences < 0) {
            return new TermStatistics(term.bytes(), documents, -occurrences);
        }
        TermStatistics known = terms.get(term.bytes());
        if (known == null) {
            throw new IllegalArgumentException("no global statistics of term ".concat(term.text()));
        }
        return known;
    }
}
