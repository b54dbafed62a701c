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
    :judge1_reasons::text[], :judge2_scores::float8[], :judge2_reasons::text[])
returning document_id;

-- of_query
-- The hearings about a query, the last first; all of them without a limit.
-- Audit judgement id
select id, query_id, query, judge1_model, judge2_model, judge1_score, judge2_score, kappa, agreement, judged_at
from judgements
where namespace = :namespace and query_id = :query_id
order by id desc
limit :limit::bigint;

-- scores
-- The raw scores of some hearings.
select judgement_id, document_id, judge1_score, judge1_reason, judge2_score, judge2_reason
from judge_scores
where namespace = :namespace and judgement_id = any(:judgement_ids::bigint[])
order by judgement_id, document_id;

-- recent
-- The last scores, with the beginning of each reason.
-- Audit golden query_id
select j.query_id, j.query, s.document_id, s.judge1_score, left(s.judge1_reason, :most::integer) as judge1_reason,
       s.judge2_score, left(s.judge2_reason, :most::integer) as judge2_reason
from judgements j
join judge_scores s on s.namespace = :namespace and s.judgement_id = j.id
where j.namespace = :namespace
order by j.id desc, s.document_id
limit :limit;

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

-- page_judgements
-- Hearings of the judges.
-- Audit judgement id
select (to_jsonb(r) - 'namespace')::text as record, r.id
from judgements r
where r.namespace = :namespace and :user_id::text is null and (:after_id::bigint is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_judgements
-- Adds judgements that are not there.
insert into judgements overriding system value
select * from jsonb_populate_recordset(null::judgements, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning id;

-- compare_judgements
-- Compares given records with the stored ones.
select given.id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::judgements, :records::text::jsonb) as given
left join judgements stored on stored.namespace = :namespace and stored.id = given.id;

-- page_judge_scores
-- What the judges gave to documents.
-- Audit judgement judgement_id
select (to_jsonb(r) - 'namespace')::text as record, r.judgement_id, r.document_id
from judge_scores r
where r.namespace = :namespace
  and :user_id::text is null
  and (:after_judgement_id::bigint is null or (r.judgement_id, r.document_id) > (:after_judgement_id,
      :after_document_id::bigint))
order by r.judgement_id, r.document_id
limit :limit;

-- restore_judge_scores
-- Adds scores of judges that are not there.
insert into judge_scores overriding system value
select * from jsonb_populate_recordset(null::judge_scores, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning judgement_id, document_id;

-- compare_judge_scores
-- Compares given records with the stored ones.
select given.judgement_id, given.document_id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::judge_scores, :records::text::jsonb) as given
left join judge_scores stored
    on stored.namespace = :namespace and stored.judgement_id = given.judgement_id
      and stored.document_id = given.document_id;
