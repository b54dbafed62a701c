-- add
-- The passages of some items.
-- Limit given owners, agent_ids.
insert into passages (
    namespace, kind, item_id, part, owner, agent_id, session_id, position, role, speaker, category, metadata, at, text,
    realm, since, ended_at, valid_from, valid_until, expires_at, trust
)
select :namespace, p.kind, p.item_id, p.part, p.owner, p.agent_id, p.session_id, p.position, p.role, p.speaker,
       p.category, p.metadata::jsonb, p.at, p.text, p.realm, p.since, p.ended_at, p.valid_from, p.valid_until,
       p.expires_at, p.trust
from unnest(
    :kinds::text[], :item_ids::text[], :parts::int[], :owners::text[], :agent_ids::text[], :session_ids::text[],
    :positions::bigint[], :roles::text[], :speakers::text[],
    :categories::text[], :metadata::text[], :times::timestamptz[], :texts::text[], :realms::text[],
    :since::timestamptz[], :ended::timestamptz[], :valid_from::timestamptz[], :valid_until::timestamptz[],
    :expiries::timestamptz[], :trusts::text[]
) as p (
    kind, item_id, part, owner, agent_id, session_id, position, role, speaker, category, metadata, at, text, realm,
    since, ended_at, valid_from, valid_until, expires_at, trust
)
returning id, item_id, part;

-- add_words
-- Their words, so that they are found at once; each has the keys up to its end in the list of all.
-- Limit seen ids.
insert into passage_words (namespace, id, kind, head, keys, weights, expires_at)
select :namespace, w.id, w.kind, w.head,
       (:keys::bigint[])[coalesce((:key_ends::integer[])[w.number - 1], 0) + 1 : w.key_end], w.weights::sparsevec,
       w.expires_at
from unnest(
    :ids::bigint[], :kinds::text[], :heads::bigint[], :key_ends::integer[], :weights::text[], :expiries::timestamptz[]
) with ordinality as w (id, kind, head, key_end, weights, expires_at, number);

-- enqueue
-- The indexer adds their vectors.
-- Limit seen ids.
insert into passage_queue (namespace, id, owner)
select :namespace, q.id, q.owner from unnest(:ids::bigint[], :owners::text[]) as q (id, owner);

-- relabel
-- Another category and other metadata for the passages of one item.
-- Limit memory item_id.
update passages set category = :category, metadata = :metadata::text::jsonb
where namespace = :namespace and kind = :kind and item_id = :item_id;

-- retire
-- The passages of an item become those of a past version of it, with their words and vectors.
-- Limit memory item_id.
update passages set kind = :past_kind, item_id = :past_item_id, ended_at = :moment
where namespace = :namespace and kind = :kind and item_id = :item_id
returning id;

-- retire_words
-- The same of what was derived from them: words.
-- Limit seen ids.
update passage_words set kind = :past_kind where namespace = :namespace and id = any(:ids::bigint[]);

-- retire_vectors
-- The same of what was derived from them: vectors.
-- Limit seen ids.
update passage_vectors set kind = :past_kind where namespace = :namespace and id = any(:ids::bigint[]);

-- expire
-- When the passages of some items are over.
-- Limit memory item_ids.
update passages set expires_at = :expires_at::timestamptz
where namespace = :namespace and kind = :kind and item_id = any(:item_ids::text[])
returning id;

-- expire_words
-- The same of what was derived from them: words.
-- Limit seen ids.
update passage_words set expires_at = :expires_at::timestamptz
where namespace = :namespace and id = any(:ids::bigint[]);

-- of_items
-- The passages of some items of one kind.
-- Limit memory item_ids.
select id from passages where namespace = :namespace and kind = :kind and item_id = any(:item_ids::text[]);

-- count_of_items
-- How many passages some items of one kind have.
select count(*) as passages from passages
where namespace = :namespace and kind = :kind and item_id = any(:item_ids::text[]);

-- count_in_sessions
-- How many passages the messages of some sessions have.
select count(*) as passages from passages
where namespace = :namespace and kind = 'message' and session_id = any(:session_ids::text[]);

-- items
-- Which items some passages belong to.
select id, item_id from passages where namespace = :namespace and id = any(:ids::bigint[]);

-- parts
-- The passages of some items of one kind.
select item_id, owner, speaker, role, text
from passages
where namespace = :namespace and kind = :kind and item_id = any(:item_ids::text[])
order by item_id, part;

-- trusts
-- Where the texts of some items of one kind come from.
-- Limit none: it tells a class of trust, of what the caller names as a source.
select item_id, role, trust from passages
where namespace = :namespace and kind = :kind and item_id = any(:item_ids::text[]) and part = 0;

-- kinds
-- Under which kinds an id is known.
select distinct kind from passages
where namespace = :namespace and kind = any(:among::text[]) and item_id = :item_id order by kind;

-- lock
-- Waits until no indexer works on these passages, and keeps it so.
-- Limit seen ids.
select id from passage_queue where namespace = :namespace and id = any(:ids::bigint[]) order by id for update;

-- counted_weights
-- The words of those passages that the statistics know.
-- Limit seen ids.
select words.weights::text as weights
from passage_words words
left join passage_queue queue on queue.namespace = :namespace and queue.id = words.id
where words.namespace = :namespace and words.id = any(:ids::bigint[]) and (queue.id is null or queue.counted);

-- remove
-- The passages themselves.
-- Role write: a change replaces them.
-- Limit seen ids.
delete from passages where namespace = :namespace and id = any(:ids::bigint[]);

-- remove_words
-- What was derived from them: words.
-- Role write: a change replaces them.
-- Limit seen ids.
delete from passage_words where namespace = :namespace and id = any(:ids::bigint[]);

-- remove_vectors
-- What was derived from them: vectors.
-- Role write: a change replaces them.
-- Limit seen ids.
delete from passage_vectors where namespace = :namespace and id = any(:ids::bigint[]);

-- remove_from_queue
-- What was still to be done for them.
-- Role write: a change replaces them.
-- Limit seen ids.
delete from passage_queue where namespace = :namespace and id = any(:ids::bigint[]);

-- count_terms
-- Adds to the counts of terms, in term order so that two writers never wait for each other; negative takes away.
-- Limit none: they are counted for all together.
insert into term_stats (namespace, term, df)
select :namespace, t.term, t.df from unnest(:terms::int[], :counts::bigint[]) as t (term, df) order by t.term
on conflict (namespace, term) do update set df = term_stats.df + excluded.df;

-- remove_unused_terms
-- Terms that no passage has any more. A writer that counts one meanwhile waits, and begins anew.
-- Role write: a change leaves some, too.
-- Limit none: they are counted for all together.
delete from term_stats where namespace = :namespace and term = any(:counts::int[]) and df <= 0;

-- claim
-- The newest passages that no other worker has.
select id, counted from passage_queue where namespace = :namespace order by id desc limit :limit for update skip locked;

-- claim_uncounted
-- The same where there is no model: only those whose words are not counted yet.
select id, counted from passage_queue
where namespace = :namespace and not counted
order by id desc
limit :limit
for update skip locked;

-- claim_some
-- Some passages, but for those that somebody else works on.
select id, counted from passage_queue
where namespace = :namespace and id = any(:ids::bigint[])
order by id desc
limit :limit
for update skip locked;

-- texts
-- What to embed, and the words to count.
-- Limit seen ids.
select passages.id, passages.kind, passages.owner, words.head, passages.text, words.weights::text as weights
from passages
join passage_words words on words.namespace = :namespace and words.id = passages.id
where passages.namespace = :namespace and passages.id = any(:ids::bigint[]);

-- add_vectors
-- Vectors, in the space of one model.
-- Limit seen ids.
insert into passage_vectors (namespace, id, kind, owner, head, model, embedding)
select :namespace, v.id, v.kind, v.owner, v.head, :model, v.embedding::halfvec
from unnest(:ids::bigint[], :kinds::text[], :owners::text[], :heads::bigint[], :vectors::text[]) as v (id, kind,
    owner, head, embedding)
-- One may be left from when the namespace had this model before.
on conflict (namespace, id, model) do nothing;

-- mark_counted
-- Their words are in the statistics now.
update passage_queue set counted = true where namespace = :namespace and id = any(:ids::bigint[]);

-- waiting
-- How many passages of the namespace wait for the indexer, up to a bound.
select count(*) as waiting from (select id from passage_queue where namespace = :namespace limit :at_most) as
    some_of_them;

-- backlog
-- The same with the longest wait in seconds, which is among the oldest passages.
select count(*) as waiting, coalesce(extract(epoch from now() - min(queued_at)), 0)::float8 as seconds
from (select queued_at from passage_queue where namespace = :namespace order by id limit :at_most) as some_of_them;

-- waiting_in_session
-- The passages of one session that wait; an owner's are few, however long the session is.
select queue.id
from passage_queue queue
join passages on passages.namespace = :namespace and passages.id = queue.id
where queue.namespace = :namespace and queue.owner = :owner and passages.session_id = :session_id;

-- waiting_of
-- Which of some passages wait.
select id from passage_queue where namespace = :namespace and id = any(:ids::bigint[]);

-- waiting_anywhere
-- How many passages of all namespaces wait for the indexer, up to a bound.
select count(*) as waiting from (select id from passage_queue limit :at_most) as some_of_them;

-- namespaces_with_work
-- Every namespace that has something in the queue, one index probe each.
with recursive found (namespace) as (
    (select namespace from passage_queue order by namespace limit 1)
    union all
    select (
        select queue.namespace from passage_queue queue
        where queue.namespace > found.namespace
        order by queue.namespace
        limit 1
    )
    from found
    where found.namespace is not null
)
select namespace from found where namespace is not null;

-- namespaces_with_expired
-- Namespaces, besides some, of what has been over for longest.
select distinct namespace from (
    select namespace from passage_words
    where expires_at <= now() and namespace <> all(:besides::text[])
    order by expires_at
    limit :limit
) as oldest
order by namespace;
