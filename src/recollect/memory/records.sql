-- page_sessions
-- Sessions, with their windows.
select (to_jsonb(r) - 'namespace')::text as record, r.id
from sessions r
where r.namespace = :namespace and (:user_id::text is null or r.user_id = :user_id)
  and (:after_id::text is null or r.id collate "C" > :after_id)
order by r.id collate "C"
limit :limit;

-- restore_sessions
-- Adds sessions that are not there; says of the others whether they are the same, or akin: the same conversation, which
-- has gone on since, so that the messages of the one have their places in the other.
with given as (select * from jsonb_populate_recordset(null::sessions, :records::text::jsonb)),
added as (insert into sessions overriding system value select * from given on conflict do nothing returning id)
select given.id, added.id is not null as added, to_jsonb(stored) = to_jsonb(given) as same,
       (stored.user_id, stored.realm, stored.created_at) = (given.user_id, given.realm, given.created_at)
           and stored.next_position >= given.next_position as akin
from given
left join added on added.id = given.id
left join sessions stored on stored.namespace = :namespace and stored.id = given.id;

-- page_messages
-- Messages; a user's are those of the user's sessions.
select (to_jsonb(r) - 'namespace')::text as record, r.id
from messages r
where r.namespace = :namespace
  and (
      :user_id::text is null
      or exists (select from sessions s where s.namespace = :namespace and s.id = r.session_id and s.user_id = :user_id)
  )
  and (:after_id::uuid is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_messages
-- Adds messages that are not there; says of the others whether they are the same.
with given as (select * from jsonb_populate_recordset(null::messages, :records::text::jsonb)),
added as (insert into messages overriding system value select * from given on conflict do nothing returning id)
select given.id, added.id is not null as added, to_jsonb(stored) = to_jsonb(given) as same
from given
left join added on added.id = given.id
left join messages stored on stored.namespace = :namespace and stored.id = given.id;

-- page_summaries
-- Summaries of what windows let go.
select (to_jsonb(r) - 'namespace')::text as record, r.session_id, r.until
from summaries r
where r.namespace = :namespace
  and (
      :user_id::text is null
      or exists (select from sessions s where s.namespace = :namespace and s.id = r.session_id and s.user_id = :user_id)
  )
  and (:after_session_id::text is null or (r.session_id collate "C", r.until) > (:after_session_id,
      :after_until::bigint))
order by r.session_id collate "C", r.until
limit :limit;

-- restore_summaries
-- Adds summaries that are not there; says of the others whether they are the same.
with given as (select * from jsonb_populate_recordset(null::summaries, :records::text::jsonb)),
added as (
    insert into summaries overriding system value select * from given on conflict do nothing
    returning session_id, until
)
select given.session_id, given.until,
       added.session_id is not null as added, to_jsonb(stored) = to_jsonb(given) as same
from given
left join added on added.session_id = given.session_id and added.until = given.until
left join summaries stored
    on stored.namespace = :namespace and stored.session_id = given.session_id and stored.until = given.until;

-- page_documents
-- Documents, which have no owner. A vector is shown as a list of numbers.
select (to_jsonb(r) - 'namespace' || jsonb_build_object('embedding', r.embedding::text::jsonb))::text as record, r.id
from documents r
where r.namespace = :namespace and :user_id::text is null and (:after_id::uuid is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_documents
-- Adds documents that are not there; says of the others whether they are the same.
with given as (select * from jsonb_populate_recordset(null::documents, :records::text::jsonb)),
added as (insert into documents overriding system value select * from given on conflict do nothing returning id)
select given.id, added.id is not null as added, to_jsonb(stored) = to_jsonb(given) as same
from given
left join added on added.id = given.id
left join documents stored on stored.namespace = :namespace and stored.id = given.id;

-- page_memories
-- Long-term memories, superseded ones included.
select (to_jsonb(r) - 'namespace')::text as record, r.id
from memories r
where r.namespace = :namespace and (:user_id::text is null or r.user_id = :user_id)
  and (:after_id::uuid is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_memories
-- Adds memories that are not there; says of the others whether they are the same.
with given as (select * from jsonb_populate_recordset(null::memories, :records::text::jsonb)),
added as (insert into memories overriding system value select * from given on conflict do nothing returning id)
select given.id, added.id is not null as added, to_jsonb(stored) = to_jsonb(given) as same
from given
left join added on added.id = given.id
left join memories stored on stored.namespace = :namespace and stored.id = given.id;

-- page_memory_history
-- What happened to memories, deleted ones included.
select (to_jsonb(r) - 'namespace')::text as record, r.memory_id, r.number
from memory_history r
where r.namespace = :namespace
  and (:user_id::text is null or r.user_id = :user_id)
  and (:after_memory_id::uuid is null or (r.memory_id, r.number) > (:after_memory_id, :after_number::bigint))
order by r.memory_id, r.number
limit :limit;

-- restore_memory_history
-- Adds entries of the history of memories that are not there; says of the others whether they are the same.
with given as (select * from jsonb_populate_recordset(null::memory_history, :records::text::jsonb)),
added as (
    insert into memory_history overriding system value select * from given on conflict do nothing
    returning memory_id, number
)
select given.memory_id, given.number, added.memory_id is not null as added, to_jsonb(stored) = to_jsonb(given) as same
from given
left join added on added.memory_id = given.memory_id and added.number = given.number
left join memory_history stored
    on stored.namespace = :namespace and stored.memory_id = given.memory_id and stored.number = given.number;

-- page_insights
-- Insights; a user's are those whose every source is a message of the user.
select (to_jsonb(r) - 'namespace')::text as record, r.id
from insights r
where r.namespace = :namespace
  and (
      :user_id::text is null
      or nullif(cardinality(r.source_ids), 0) = (
          select count(*)
          from messages m
          join sessions s on s.namespace = :namespace and s.id = m.session_id
          where m.namespace = :namespace and m.seq = any(r.source_ids) and s.user_id = :user_id
      )
  )
  and (:after_id::bigint is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_insights
-- Adds insights that are not there; says of the others whether they are the same.
with given as (select * from jsonb_populate_recordset(null::insights, :records::text::jsonb)),
added as (insert into insights overriding system value select * from given on conflict do nothing returning id)
select given.id, added.id is not null as added, to_jsonb(stored) = to_jsonb(given) as same
from given
left join added on added.id = given.id
left join insights stored on stored.namespace = :namespace and stored.id = given.id;

-- page_working_items
-- What is in working memory, which belongs to nobody in particular, as all that follows but resources.
select (to_jsonb(r) - 'namespace')::text as record, r.id
from working_items r
where r.namespace = :namespace and :user_id::text is null and (:after_id::bigint is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_working_items
-- Adds items of working memory that are not there; says of the others whether they are the same.
with given as (select * from jsonb_populate_recordset(null::working_items, :records::text::jsonb)),
added as (insert into working_items overriding system value select * from given on conflict do nothing returning id)
select given.id, added.id is not null as added, to_jsonb(stored) = to_jsonb(given) as same
from given
left join added on added.id = given.id
left join working_items stored on stored.namespace = :namespace and stored.id = given.id;

-- page_stale_items
-- What left working memory.
select (to_jsonb(r) - 'namespace')::text as record, r.id
from stale_items r
where r.namespace = :namespace and :user_id::text is null and (:after_id::bigint is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_stale_items
-- Adds items that left working memory that are not there; says of the others whether they are the same.
with given as (select * from jsonb_populate_recordset(null::stale_items, :records::text::jsonb)),
added as (insert into stale_items overriding system value select * from given on conflict do nothing returning id)
select given.id, added.id is not null as added, to_jsonb(stored) = to_jsonb(given) as same
from given
left join added on added.id = given.id
left join stale_items stored on stored.namespace = :namespace and stored.id = given.id;

-- page_episodes
-- Episodes.
select (to_jsonb(r) - 'namespace')::text as record, r.id
from episodes r
where r.namespace = :namespace and :user_id::text is null and (:after_id::bigint is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_episodes
-- Adds episodes that are not there; says of the others whether they are the same.
with given as (select * from jsonb_populate_recordset(null::episodes, :records::text::jsonb)),
added as (insert into episodes overriding system value select * from given on conflict do nothing returning id)
select given.id, added.id is not null as added, to_jsonb(stored) = to_jsonb(given) as same
from given
left join added on added.id = given.id
left join episodes stored on stored.namespace = :namespace and stored.id = given.id;

-- page_graph_nodes
-- Nodes of the graph.
select (to_jsonb(r) - 'namespace')::text as record, r.id
from graph_nodes r
where r.namespace = :namespace and :user_id::text is null and (:after_id::bigint is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_graph_nodes
-- Adds nodes that are not there; says of the others whether they are the same, or akin: the same thing, of which more is
-- known since.
with given as (select * from jsonb_populate_recordset(null::graph_nodes, :records::text::jsonb)),
added as (insert into graph_nodes overriding system value select * from given on conflict do nothing returning id)
select given.id, added.id is not null as added, to_jsonb(stored) = to_jsonb(given) as same,
       (stored.name, stored.created_at) = (given.name, given.created_at) as akin
from given
left join added on added.id = given.id
left join graph_nodes stored on stored.namespace = :namespace and stored.id = given.id;

-- page_graph_edges
-- Edges of the graph.
select (to_jsonb(r) - 'namespace')::text as record, r.id
from graph_edges r
where r.namespace = :namespace and :user_id::text is null and (:after_id::bigint is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_graph_edges
-- Adds edges that are not there; says of the others whether they are the same.
with given as (select * from jsonb_populate_recordset(null::graph_edges, :records::text::jsonb)),
added as (insert into graph_edges overriding system value select * from given on conflict do nothing returning id)
select given.id, added.id is not null as added, to_jsonb(stored) = to_jsonb(given) as same
from given
left join added on added.id = given.id
left join graph_edges stored on stored.namespace = :namespace and stored.id = given.id;

-- page_resources
-- Resources.
select (to_jsonb(r) - 'namespace')::text as record, r.id
from resources r
where r.namespace = :namespace and (:user_id::text is null or r.user_id = :user_id)
  and (:after_id::uuid is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_resources
-- Adds resources that are not there; says of the others whether they are the same.
with given as (select * from jsonb_populate_recordset(null::resources, :records::text::jsonb)),
added as (insert into resources overriding system value select * from given on conflict do nothing returning id)
select given.id, added.id is not null as added, to_jsonb(stored) = to_jsonb(given) as same
from given
left join added on added.id = given.id
left join resources stored on stored.namespace = :namespace and stored.id = given.id;

-- page_golden_queries
-- The golden set.
select (to_jsonb(r) - 'namespace')::text as record, r.id
from golden_queries r
where r.namespace = :namespace and :user_id::text is null and (:after_id::bigint is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_golden_queries
-- Adds golden queries that are not there; says of the others whether they are the same.
with given as (select * from jsonb_populate_recordset(null::golden_queries, :records::text::jsonb)),
added as (insert into golden_queries overriding system value select * from given on conflict do nothing returning id)
select given.id, added.id is not null as added, to_jsonb(stored) = to_jsonb(given) as same
from given
left join added on added.id = given.id
left join golden_queries stored on stored.namespace = :namespace and stored.id = given.id;

-- page_golden_runs
-- Runs of the golden set.
select (to_jsonb(r) - 'namespace')::text as record, r.day
from golden_runs r
where r.namespace = :namespace and :user_id::text is null and (:after_day::date is null or r.day > :after_day)
order by r.day
limit :limit;

-- restore_golden_runs
-- Adds golden runs that are not there; says of the others whether they are the same.
with given as (select * from jsonb_populate_recordset(null::golden_runs, :records::text::jsonb)),
added as (insert into golden_runs overriding system value select * from given on conflict do nothing returning day)
select given.day, added.day is not null as added, to_jsonb(stored) = to_jsonb(given) as same
from given
left join added on added.day = given.day
left join golden_runs stored on stored.namespace = :namespace and stored.day = given.day;

-- page_golden_results
-- What runs of the golden set found.
select (to_jsonb(r) - 'namespace')::text as record, r.day, r.query_id
from golden_results r
where r.namespace = :namespace and :user_id::text is null
  and (:after_day::date is null or (r.day, r.query_id) > (:after_day, :after_query_id::bigint))
order by r.day, r.query_id
limit :limit;

-- restore_golden_results
-- Adds results of golden runs that are not there; says of the others whether they are the same.
with given as (select * from jsonb_populate_recordset(null::golden_results, :records::text::jsonb)),
added as (
    insert into golden_results overriding system value select * from given on conflict do nothing
    returning day, query_id
)
select given.day, given.query_id, added.day is not null as added, to_jsonb(stored) = to_jsonb(given) as same
from given
left join added on added.day = given.day and added.query_id = given.query_id
left join golden_results stored
    on stored.namespace = :namespace and stored.day = given.day and stored.query_id = given.query_id;

-- page_golden_query_baselines
-- What golden queries are held to.
select (to_jsonb(r) - 'namespace')::text as record, r.query_id
from golden_query_baselines r
where r.namespace = :namespace and :user_id::text is null
  and (:after_query_id::bigint is null or r.query_id > :after_query_id)
order by r.query_id
limit :limit;

-- restore_golden_query_baselines
-- Adds baselines of golden queries that are not there; says of the others whether they are the same.
with given as (select * from jsonb_populate_recordset(null::golden_query_baselines, :records::text::jsonb)),
added as (
    insert into golden_query_baselines overriding system value select * from given on conflict do nothing
    returning query_id
)
select given.query_id, added.query_id is not null as added, to_jsonb(stored) = to_jsonb(given) as same
from given
left join added on added.query_id = given.query_id
left join golden_query_baselines stored on stored.namespace = :namespace and stored.query_id = given.query_id;

-- page_judgements
-- Hearings of the judges.
select (to_jsonb(r) - 'namespace')::text as record, r.id
from judgements r
where r.namespace = :namespace and :user_id::text is null and (:after_id::bigint is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_judgements
-- Adds judgements that are not there; says of the others whether they are the same.
with given as (select * from jsonb_populate_recordset(null::judgements, :records::text::jsonb)),
added as (insert into judgements overriding system value select * from given on conflict do nothing returning id)
select given.id, added.id is not null as added, to_jsonb(stored) = to_jsonb(given) as same
from given
left join added on added.id = given.id
left join judgements stored on stored.namespace = :namespace and stored.id = given.id;

-- page_judge_scores
-- What the judges gave to documents.
select (to_jsonb(r) - 'namespace')::text as record, r.judgement_id, r.document_id
from judge_scores r
where r.namespace = :namespace
  and :user_id::text is null
  and (:after_judgement_id::bigint is null or (r.judgement_id, r.document_id) > (:after_judgement_id,
      :after_document_id::bigint))
order by r.judgement_id, r.document_id
limit :limit;

-- restore_judge_scores
-- Adds scores of judges that are not there; says of the others whether they are the same.
with given as (select * from jsonb_populate_recordset(null::judge_scores, :records::text::jsonb)),
added as (
    insert into judge_scores overriding system value select * from given on conflict do nothing
    returning judgement_id, document_id
)
select given.judgement_id, given.document_id,
       added.judgement_id is not null as added, to_jsonb(stored) = to_jsonb(given) as same
from given
left join added on added.judgement_id = given.judgement_id and added.document_id = given.document_id
left join judge_scores stored
    on stored.namespace = :namespace and stored.judgement_id = given.judgement_id
      and stored.document_id = given.document_id;
