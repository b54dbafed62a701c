-- add
-- One insight, with the messages it was condensed from.
insert into insights (namespace, content, source_ids, fidelity, metadata, trust)
values (:namespace, :content, :source_ids::bigint[], :fidelity, :metadata, :trust)
returning id, created_at;

-- find
-- Some insights by their ids, those above a fidelity.
select id, content, source_ids, fidelity, metadata, created_at
from insights
where namespace = :namespace and id = any(:ids::bigint[])
  and (:fidelity_min::float8 is null or fidelity >= :fidelity_min);

-- newest
-- Insights of a range of time and above a fidelity, newest first.
-- Audit insight id
select id, content, source_ids, fidelity, metadata, created_at
from insights
where namespace = :namespace
  and (:fidelity_min::float8 is null or fidelity >= :fidelity_min)
  and (:since::timestamptz is null or created_at >= :since)
  and (:until::timestamptz is null or created_at <= :until)
  and not exists (
      select from held
      where held.namespace = :namespace and held.kind = 'insight' and held.item_id = insights.id::text
        and held.state = 'held'
  )
order by created_at desc, id desc
limit :limit;

-- made_from
-- Insights that some messages went into, and whether there are other messages that did.
select insights.id,
       exists (
           select from messages
           where messages.namespace = :namespace
             and messages.seq = any(insights.source_ids)
             and messages.seq <> all(:numbers::bigint[])
       ) as from_others
from insights
where insights.namespace = :namespace
  -- Not &&, which compares every pair: the numbers given here are hashed.
  and exists (select from unnest(insights.source_ids) as source (seq) where source.seq = any(:numbers::bigint[]));

-- made_from_sessions
-- The same for all the messages of some sessions.
select insights.id, bool_or(messages.session_id <> all(:session_ids::text[])) as from_others
from insights
cross join unnest(insights.source_ids) as source (seq)
join messages on messages.namespace = :namespace and messages.seq = source.seq
where insights.namespace = :namespace
group by insights.id
having bool_or(messages.session_id = any(:session_ids::text[]));

-- remove
-- Some insights.
delete from insights where namespace = :namespace and id = any(:ids::bigint[]) returning id;

-- page_insights
-- Insights; a user's are those whose every source is a message of the user.
-- Audit insight id
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
-- Adds insights that are not there.
insert into insights overriding system value
select * from jsonb_populate_recordset(null::insights, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning id;

-- compare_insights
-- Compares given records with the stored ones.
select given.id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::insights, :records::text::jsonb) as given
left join insights stored on stored.namespace = :namespace and stored.id = given.id;

-- size_insights
-- Rows up to a bound, along an index, to be counted.
select 1 as row from insights where namespace = :namespace order by id limit :limit;

-- shown_insights
-- Some insights as the feed shows them.
-- Audit insight item_id
select id::text as item_id,
       jsonb_build_object(
           'text', left(content, :most::integer), 'fidelity', fidelity, 'source_ids', source_ids
       ) as content, created_at as at
from insights
where namespace = :namespace and id = any(:ids::text[]::bigint[]);
