-- add
-- One hearing of both judges.
insert into judgements (
    namespace, query_id, query, judge1_model, judge2_model, judge1_score, judge2_score, kappa, agreement
)
values (:namespace, :query_id, :query, :judge1_model, :judge2_model, :judge1_score, :judge2_score, :kappa, :agreement)
returning id, judged_at;

-- add_scores
-- What both judges said of each document.
insert into judge_scores (
    namespace, judgement_id, document_id, judge1_score, judge1_reason, judge2_score, judge2_reason
)
select :namespace, :judgement_id, * from unnest(:document_ids::bigint[], :judge1_scores::float8[],
    :judge1_reasons::text[], :judge2_scores::float8[], :judge2_reasons::text[]);

-- of_query
-- Every hearing about a query, the last first.
select id, query_id, query, judge1_model, judge2_model, judge1_score, judge2_score, kappa, agreement, judged_at
from judgements
where namespace = :namespace and query_id = :query_id
order by id desc;

-- scores
-- The raw scores of some hearings.
select judgement_id, document_id, judge1_score, judge1_reason, judge2_score, judge2_reason
from judge_scores
where namespace = :namespace and judgement_id = any(:judgement_ids::bigint[])
order by judgement_id, document_id;

-- count_of_documents
-- How many scores some documents have.
select count(*) as scores from judge_scores where namespace = :namespace and document_id = any(:ids::bigint[]);

-- remove_of_documents
-- The scores of some documents, whose reasons may tell what the documents said.
delete from judge_scores where namespace = :namespace and document_id = any(:ids::bigint[]) returning judgement_id;

-- remove_empty
-- Those of some hearings of which no score is left.
delete from judgements where namespace = :namespace and id = any(:hearings::bigint[])
  and not exists (select from judge_scores where namespace = :namespace and judgement_id = judgements.id);
