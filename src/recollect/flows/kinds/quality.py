"""The golden set with its runs, and what judges said: records that no item is made of."""

from functools import partial

from recollect import checks
from recollect.flows.kinds import rules
from recollect.flows.kinds.kind import Kind, in_feed
from recollect.language.lengths import LENGTHS
from recollect.memory.cognitive import golden, judging

_SCORES = {"judge1_score": rules.share, "judge2_score": rules.share}


GOLDEN = (
    Kind(
        golden.QUERY_RECORD,
        {"query": partial(checks.question, needs_words=False)},
        references={"expected_ids": ("insight", "id")},
        feed=in_feed("golden", golden.QUERY_RECORD),
    ),
    Kind(
        golden.RUN_RECORD,
        {"precision_at_5": rules.share, "baseline_precision": rules.share, "queries_tested": rules.at_least(0)},
    ),
    Kind(
        golden.RESULT_RECORD,
        {"query_type": rules.one_of(*LENGTHS), "hits": rules.at_least(0)},
        references={
            "day": ("golden_run", "day"),
            "query_id": ("golden_query", "id"),
            "found_ids": ("insight", "id"),
        },
    ),
    Kind(
        golden.BASELINE_RECORD,
        {"hits": rules.at_least(0)},
        references={"query_id": ("golden_query", "id"), "expected_ids": ("insight", "id")},
    ),
)
JUDGING = (
    Kind(
        judging.RECORD,
        {
            "query": checks.text,
            "kappa": rules.between(-1.0, 1.0),
            "agreement": rules.one_of(*judging.AGREEMENTS),
            **_SCORES,
        },
        references={"query_id": ("golden_query", "id")},
    ),
    Kind(
        judging.SCORE_RECORD,
        _SCORES,
        references={"judgement_id": ("judgement", "id"), "document_id": ("insight", "id")},
    ),
)

QUALITY = (*GOLDEN, *JUDGING)
