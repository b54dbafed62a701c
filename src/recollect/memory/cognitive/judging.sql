-- add
-- One hearing of both judges.
insert into judgements (
    namespace, query_id, query, judge1_model, judge2_model, judge1_score, judge2_score, kappa, agreement
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
returning id, judged_at;

-- add_scores
-- What both judges said of each document.
insert into judge_scores (
    namespace, judgement_id, document_id, judge1_score, judge1_reason, judge2_score, judge2_reason
)
select $1, $2, * from unnest($3::bigint[], $4::float8[], $5::text[], $6::float8[], $7::text[]);

-- of_query
-- Every hearing about a query, the last first.
select id, query_id, query, judge1_model, judge2_model, judge1_score, judge2_score, kappa, agreement, judged_at
from judgements
where namespace = $1 and query_id = $2
order by id desc;

-- scores
-- The raw scores of some hearings.
select judgement_id, document_id, judge1_score, judge1_reason, judge2_score, judge2_reason
from judge_scores
where namespace = $1 and judgement_id = any($2::bigint[])
order by judgement_id, document_id;

-- count_of_documents
-- How many scores some documents have.
select count(*) as scores from judge_scores where namespace = $1 and document_id = any($2::bigint[]);

-- remove_of_documents
-- The scores of some documents, whose reasons may tell what the documents said.
delete from judge_scores where namespace = $1 and document_id = any($2::bigint[]) returning judgement_id;

-- remove_empty
-- Those of some hearings of which no score is left.
delete from judgements where namespace = $1 and id = any($2::bigint[])
  and not exists (select from judge_scores where namespace = $1 and judgement_id = judgements.id);
