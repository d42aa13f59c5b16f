import time

import numpy as np
import pytest

import pt_neural as pn
from pt_neural.text import PackedSequences
from pt_neural.text.packed import offsets_of
from pt_neural.training.groups import Groups
from pt_neural.training.sampling import EpochSampler, GroupBatches
from pt_neural.training.settings import DEFAULT_NEGATIVES

POOL_LENGTHS = [1, 2, 5, 30]


def groups_of(size, *, pools=False):
    """Group i has query i // 2 and positive i; with pools, negatives from 100 on."""
    queries = np.arange(size) // 2
    positives = np.arange(size)
    relevant = np.sort(queries * 1000 + positives)
    groups = Groups(queries, positives, np.ones(size, dtype=np.float32), relevant, 1000)
    if not pools:
        return groups
    terms = np.concatenate([np.arange(length) + 100 * (pool + 1) for pool, length in enumerate(POOL_LENGTHS)])
    return Groups(
        queries,
        positives,
        np.ones(size, dtype=np.float32),
        relevant,
        1000,
        np.arange(size) % len(POOL_LENGTHS),
        PackedSequences(terms, offsets_of(np.array(POOL_LENGTHS))),
        np.zeros(len(terms), dtype=np.float32),
    )


def batches_of(groups, **settings):
    return GroupBatches(groups, pn.Training(**settings), lambda queries, documents: (queries, documents))


def positives_of(batches, epoch):
    return [batches[epoch, number].inputs[1][:, 0] for number in range(len(batches))]


def as_arrays(batch):
    return [*batch.inputs, batch.labels.numpy(), batch.valid.numpy()]


@pytest.mark.parametrize("negatives", ["retrieved", "random", "in-batch"])
def test_a_batch_depends_only_on_seed_epoch_and_number(negatives):
    groups = groups_of(40, pools=negatives == "retrieved")
    first = batches_of(groups, negatives=negatives, batch_size=8, num_negatives=3)
    in_order = {(epoch, number): as_arrays(first[epoch, number]) for epoch in range(3) for number in range(5)}
    second = batches_of(groups, negatives=negatives, batch_size=8, num_negatives=3)
    for key in reversed(in_order):  # whatever was asked for before
        for array, same in zip(in_order[key], as_arrays(second[key]), strict=True):
            np.testing.assert_array_equal(array, same)
    other_seed = batches_of(groups, negatives=negatives, batch_size=8, num_negatives=3, seed=14)
    seen = [first[0, 0], first[0, 1], first[1, 0], other_seed[0, 0]]
    documents = {batch.inputs[1].tobytes() for batch in seen}
    assert len(documents) == 4


def test_every_group_once_an_epoch():
    batches = batches_of(groups_of(43), negatives="random", batch_size=8)
    assert len(batches) == 6
    for epoch in range(3):
        sizes = [len(positives) for positives in positives_of(batches, epoch)]
        assert sizes == [8, 8, 8, 8, 8, 3]
        assert sorted(np.concatenate(positives_of(batches, epoch))) == list(range(43))


def test_queries_and_labels_stay_with_their_positives():
    batch = batches_of(groups_of(20), negatives="random", batch_size=20)[0, 0]
    queries, documents = batch.inputs
    np.testing.assert_array_equal(queries, documents[:, 0] // 2)
    assert batch.labels[:, 0].tolist() == [1.0] * 20
    assert batch.labels[:, 1:].sum() == 0
    assert batch.valid.shape == batch.labels.shape == (20, 1 + DEFAULT_NEGATIVES)


def test_max_groups_draws_others_each_epoch():
    batches = batches_of(groups_of(100), negatives="random", batch_size=8, max_groups=20)
    epochs = [np.concatenate(positives_of(batches, epoch)) for epoch in range(2)]
    assert [len(set(epoch)) for epoch in epochs] == [20, 20]
    assert set(epochs[0]) != set(epochs[1])
    assert len(batches_of(groups_of(10), negatives="random", batch_size=8, max_groups=20)) == 2


def test_in_batch_negatives_are_the_positives_of_the_other_groups():
    batch = batches_of(groups_of(8), negatives="in-batch", batch_size=8)[0, 0]
    queries, documents = batch.inputs
    assert documents.shape == (8, 8)
    for row in documents:
        assert sorted(row) == list(range(8))
    np.testing.assert_array_equal(batch.valid[:, 1:], documents[:, 1:] // 2 != queries[:, None])


def test_in_batch_negatives_can_be_fewer_but_not_more():
    assert batches_of(groups_of(8), negatives="in-batch", batch_size=8, num_negatives=3)[0, 0].valid.shape == (8, 4)
    assert batches_of(groups_of(8), negatives="in-batch", batch_size=8, num_negatives=99)[0, 0].valid.shape == (8, 8)


def test_a_last_group_alone_is_left_out_where_it_would_have_no_negatives():
    assert len(batches_of(groups_of(9), negatives="in-batch", batch_size=4)) == 2
    assert len(batches_of(groups_of(10), negatives="in-batch", batch_size=4)) == 3
    assert len(batches_of(groups_of(9), negatives="random", batch_size=4)) == 3
    assert len(batches_of(groups_of(9), negatives="in-batch", batch_size=4, max_groups=1)) == 1


def test_short_pools_are_masked_and_nothing_stands_twice():
    batches = batches_of(groups_of(40, pools=True), negatives="retrieved", num_negatives=5, batch_size=40)
    for epoch in range(5):
        batch = batches[epoch, 0]
        documents = batch.inputs[1]
        for row, valid in zip(documents, batch.valid.numpy(), strict=True):
            pool = row[0] % len(POOL_LENGTHS)
            negatives = row[1:][valid[1:]]
            assert len(set(negatives)) == len(negatives) == min(5, POOL_LENGTHS[pool])
            assert (negatives // 100 == pool + 1).all()
            assert (negatives % 100 < POOL_LENGTHS[pool]).all()


def test_all_of_a_pool_is_drawn_in_the_end():
    batches = batches_of(groups_of(40, pools=True), negatives="retrieved", num_negatives=4, batch_size=40)
    drawn = np.concatenate([batches[epoch, 0].inputs[1][:, 1:].ravel() for epoch in range(40)])
    assert set(range(400, 430)) <= set(drawn)


def test_random_negatives_are_even_and_never_relevant():
    groups = Groups(np.zeros(50, int), np.zeros(50, int), np.ones(50, np.float32), np.array([0, 3]), 5)
    batches = batches_of(groups, negatives="random", batch_size=50, num_negatives=20)
    drawn = np.concatenate([batches[epoch, 0].inputs[1][:, 1:].ravel() for epoch in range(10)])
    numbers, counts = np.unique(drawn, return_counts=True)
    assert numbers.tolist() == [1, 2, 4]
    np.testing.assert_allclose(counts / counts.sum(), 1 / 3, atol=0.03)
    assert all(batches[epoch, 0].valid.all() for epoch in range(10))


def test_where_almost_everything_is_relevant_what_was_drawn_is_masked():
    groups = Groups(np.zeros(50, int), np.zeros(50, int), np.ones(50, np.float32), np.arange(999), 1000)
    batch = batches_of(groups, negatives="random", batch_size=50)[0, 0]
    np.testing.assert_array_equal(batch.valid[:, 1:], batch.inputs[1][:, 1:] == 999)


@pytest.mark.parametrize("negatives", ["retrieved", "random"])
def test_groups_share_their_documents_except_relevant_ones(negatives):
    groups = groups_of(10, pools=negatives == "retrieved")  # groups 2i and 2i + 1 have one query
    settings = {"negatives": negatives, "batch_size": 6, "num_negatives": 3}
    own, shared = (batches_of(groups, **settings, shared_groups=count) for count in (0, 2))
    for number, size, others in ((0, 6, 2), (1, 4, 2)):
        (queries, documents), labels, valid = own[0, number]
        (same_queries, all_documents), all_labels, all_valid = shared[0, number]
        np.testing.assert_array_equal(queries, same_queries)
        assert all_documents.shape == all_labels.shape == all_valid.shape == (size, 4 * (1 + others))
        np.testing.assert_array_equal(all_documents[:, :4], documents)
        np.testing.assert_array_equal(all_labels[:, :4], labels)
        np.testing.assert_array_equal(all_valid[:, :4], valid)
        assert not all_labels[:, 4:].any()
        for group in range(size):
            for place in range(others * 4):
                lender = (group + 1 + place // 4) % size
                document = documents[lender, place % 4]
                assert all_documents[group, 4 + place] == document
                relevant = document in groups.positives[groups.queries == queries[group]]
                assert bool(all_valid[group, 4 + place]) == (bool(valid[lender, place % 4]) and not relevant)


def test_a_group_alone_has_nobody_to_share_with():
    batches = batches_of(groups_of(7, pools=True), negatives="retrieved", batch_size=3, shared_groups=2)
    assert [batches[0, number].labels.shape for number in range(3)] == [(3, 15), (3, 15), (1, 5)]


def test_the_sampler_gives_every_batch_of_the_epoch_that_was_set():
    sampler = EpochSampler(batches_of(groups_of(20), negatives="random", batch_size=8))
    assert (len(sampler), list(sampler)) == (3, [(0, 0), (0, 1), (0, 2)])
    sampler.set_epoch(4)
    assert list(sampler) == [(4, 0), (4, 1), (4, 2)]


def test_devices_share_the_batches_and_have_as_many_each():
    batches = batches_of(groups_of(40), negatives="random", batch_size=8)
    for devices, each in [(1, 5), (2, 3), (3, 2), (7, 1)]:
        shares = []
        for rank in range(devices):
            sampler = EpochSampler(batches, rank, devices)
            shares.append(list(sampler))
            assert len(shares[-1]) == len(sampler) == each
        assert {key for share in shares for key in share} == {(0, number) for number in range(5)}


def test_a_million_groups_cost_no_more_a_batch_than_a_few():
    """Shuffling them takes 10 ms or more, once an epoch; a batch takes well under one."""
    batches = batches_of(groups_of(1_000_000), negatives="random", batch_size=16)
    batches[0, 0]
    started = time.process_time()
    for number in range(1, 41):
        batches[0, number]
    assert (time.process_time() - started) / 40 < 0.005
