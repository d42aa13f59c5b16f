package pt_neural;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.TermStates;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.queries.spans.SpanNearQuery;
import org.apache.lucene.queries.spans.SpanTermQuery;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.BoostQuery;
import org.apache.lucene.search.Query;

/** Makes the queries of many windows of two terms at a time. Window i has the terms 2i and 2i + 1. */
public final class WindowQueries {
    private WindowQueries() {}

    /**
     * Queries that score by Lucene's own statistics.
     *
     * @param slops how many positions may lie between the terms of each window
     * @param inOrder whether its terms must stand in this order
     */
    public static List<Query> plain(String field, String[] terms, int[] slops, boolean[] inOrder) {
        List<Query> queries = new ArrayList<>();
        for (int i = 0; i < slops.length; i++) {
            SpanTermQuery first = new SpanTermQuery(new Term(field, terms[2 * i]));
            SpanTermQuery second = new SpanTermQuery(new Term(field, terms[2 * i + 1]));
            queries.add(near(field, first, second, slops[i], inOrder[i]));
        }
        return queries;
    }

    /**
     * Queries whose terms claim the statistics of their window.
     *
     * @param documents the number of documents with each window
     * @param occurrences how often it occurs
     */
    public static List<Query> claiming(
            IndexReader index,
            String field,
            String[] terms,
            int[] slops,
            boolean[] inOrder,
            int[] documents,
            long[] occurrences)
            throws IOException {
        List<Query> queries = new ArrayList<>();
        for (int i = 0; i < slops.length; i++) {
            SpanTermQuery first = claim(index, new Term(field, terms[2 * i]), documents[i], occurrences[i]);
            SpanTermQuery second = claim(index, new Term(field, terms[2 * i + 1]), documents[i], occurrences[i]);
            queries.add(near(field, first, second, slops[i], inOrder[i]));
        }
        return queries;
    }

    /**
     * A query of weighted clauses for each bag of words: the bag, then its windows.
     *
     * @param bagWeights the weight of each bag
     * @param counts how many windows go with each bag
     * @param places of these windows, bag after bag
     * @param weights of these windows
     */
    public static List<Query> joined(
            List<Query> bags, float[] bagWeights, List<Query> windows, int[] counts, int[] places, float[] weights) {
        List<Query> queries = new ArrayList<>();
        int next = 0;
        for (int i = 0; i < counts.length; i++) {
            BooleanQuery.Builder builder = new BooleanQuery.Builder();
            builder.add(new BoostQuery(bags.get(i), bagWeights[i]), BooleanClause.Occur.SHOULD);
            for (int end = next + counts[i]; next < end; next++) {
                Query window = windows.get(places[next]);
                builder.add(new BoostQuery(window, weights[next]), BooleanClause.Occur.SHOULD);
            }
            queries.add(builder.build());
        }
        return queries;
    }

    /** Equal terms are taken in order, or else one occurrence would make a pair with itself. */
    private static Query near(String field, SpanTermQuery first, SpanTermQuery second, int slop, boolean inOrder) {
        return new SpanNearQuery.Builder(field, inOrder || first.getTerm().equals(second.getTerm()))
                .addClause(first)
                .addClause(second)
                .setSlop(slop)
                .build();
    }

    private static SpanTermQuery claim(IndexReader index, Term term, int documents, long occurrences)
            throws IOException {
        TermStates states = new TermStates(index.getContext());
        for (LeafReaderContext leaf : index.leaves()) {
            Terms terms = leaf.reader().terms(term.field());
            TermsEnum found = terms == null ? null : terms.iterator();
            if (found != null && found.seekExact(term.bytes())) {
                states.register(found.termState(), leaf.ord);
            }
        }
        states.accumulateStatistics(documents, occurrences);
        return new SpanTermQuery(term, states);
    }
}
