-- add
-- The passages of some items.
insert into passages (
    namespace, kind, item_id, part, owner, agent_id, session_id, position, role, speaker, category, metadata, at, text,
    realm
)
select $1, p.kind, p.item_id, p.part, p.owner, p.agent_id, p.session_id, p.position, p.role, p.speaker, p.category,
       p.metadata::jsonb, p.at, p.text, p.realm
from unnest(
    $2::text[], $3::text[], $4::int[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::text[], $10::text[],
    $11::text[], $12::text[], $13::timestamptz[], $14::text[], $15::text[]
) as p (kind, item_id, part, owner, agent_id, session_id, position, role, speaker, category, metadata, at, text, realm)
returning id, item_id, part;

-- add_words
-- Their words, so that they are found at once.
insert into passage_words (namespace, id, kind, head, keys, weights)
select $1, w.id, w.kind, w.head, w.keys::bigint[], w.weights::sparsevec
from unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[]) as w (id, kind, head, keys, weights);

-- enqueue
-- Their meaning is the indexer's work.
insert into passage_queue (namespace, id, owner)
select $1, q.id, q.owner from unnest($2::bigint[], $3::text[]) as q (id, owner);

-- relabel
-- Another category and other metadata for the passages of one item.
update passages set category = $4, metadata = $5::text::jsonb where namespace = $1 and kind = $2 and item_id = $3;

-- of_items
-- The passages of some items of one kind.
select id from passages where namespace = $1 and kind = $2 and item_id = any($3::text[]);

-- count_of_items
-- How many passages some items of one kind have.
select count(*) as passages from passages where namespace = $1 and kind = $2 and item_id = any($3::text[]);

-- count_in_sessions
-- How many passages the messages of some sessions have.
select count(*) as passages from passages where namespace = $1 and kind = 'message' and session_id = any($2::text[]);

-- items
-- Which items some passages belong to.
select id, item_id from passages where namespace = $1 and id = any($2::bigint[]);

-- parts
-- The passages of some items of one kind.
select item_id, owner, speaker, role, text
from passages
where namespace = $1 and kind = $2 and item_id = any($3::text[])
order by item_id, part;

-- kinds
-- Under which kinds an id is known.
select distinct kind from passages where namespace = $1 and kind = any($2::text[]) and item_id = $3 order by kind;

-- hold
-- Waits until no indexer works on these passages, and keeps it so.
select id from passage_queue where namespace = $1 and id = any($2::bigint[]) order by id for update;

-- counted_weights
-- The words of those passages that the statistics know.
select words.weights::text as weights
from passage_words words
left join passage_queue queue on queue.namespace = $1 and queue.id = words.id
where words.namespace = $1 and words.id = any($2::bigint[]) and (queue.id is null or queue.counted);

-- remove
-- The passages themselves.
delete from passages where namespace = $1 and id = any($2::bigint[]);

-- remove_words
-- What was derived from them: words.
delete from passage_words where namespace = $1 and id = any($2::bigint[]);

-- remove_vectors
-- What was derived from them: vectors.
delete from passage_vectors where namespace = $1 and id = any($2::bigint[]);

-- remove_from_queue
-- What was still to be done for them.
delete from passage_queue where namespace = $1 and id = any($2::bigint[]);

-- count_terms
-- Adds to the counts of terms, in term order so that two writers never wait for each other; negative takes away.
insert into term_stats (namespace, term, df)
select $1, t.term, t.df from unnest($2::int[], $3::bigint[]) as t (term, df) order by t.term
on conflict (namespace, term) do update set df = term_stats.df + excluded.df;

-- remove_unused_terms
-- Terms that no passage has any more. Whoever counts one meanwhile waits, and begins anew.
delete from term_stats where namespace = $1 and term = any($2::int[]) and df <= 0;

-- claim
-- The newest passages that nobody else works on.
select id, counted from passage_queue where namespace = $1 order by id desc limit $2 for update skip locked;

-- claim_uncounted
-- The same where there is no model: only those whose words are not counted yet.
select id, counted from passage_queue
where namespace = $1 and not counted
order by id desc
limit $2
for update skip locked;

-- claim_some
-- Some passages, but for those that somebody else works on.
select id, counted from passage_queue
where namespace = $1 and id = any($2::bigint[])
order by id desc
limit $3
for update skip locked;

-- texts
-- What to embed, and the words to count.
select passages.id, passages.kind, passages.owner, words.head, passages.text, words.weights::text as weights
from passages
join passage_words words on words.namespace = $1 and words.id = passages.id
where passages.namespace = $1 and passages.id = any($2::bigint[]);

-- add_vectors
-- Meaning, in the space of one model.
insert into passage_vectors (namespace, id, kind, owner, head, model, embedding)
select $1, v.id, v.kind, v.owner, v.head, $7, v.embedding::halfvec
from unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[]) as v (id, kind, owner, head, embedding)
-- One may be left from when the namespace had this model before.
on conflict (namespace, id, model) do nothing;

-- mark_counted
-- Their words are in the statistics now.
update passage_queue set counted = true where namespace = $1 and id = any($2::bigint[]);

-- waiting
-- How many passages of the namespace wait for the indexer, up to a bound.
select count(*) as waiting from (select id from passage_queue where namespace = $1 limit $2) as some_of_them;

-- backlog
-- The same with the longest wait in seconds, which is among the oldest passages.
select count(*) as waiting, coalesce(extract(epoch from now() - min(queued_at)), 0)::float8 as seconds
from (select queued_at from passage_queue where namespace = $1 order by id limit $2) as some_of_them;

-- waiting_in_session
-- The passages of one session that wait; an owner's are few, however long the session is.
select queue.id
from passage_queue queue
join passages on passages.namespace = $1 and passages.id = queue.id
where queue.namespace = $1 and queue.owner = $2 and passages.session_id = $3;

-- waiting_of
-- Which of some passages wait.
select id from passage_queue where namespace = $1 and id = any($2::bigint[]);

-- waiting_anywhere
-- How many passages of all namespaces wait for the indexer, up to a bound.
select count(*) as waiting from (select id from passage_queue limit $1) as some_of_them;

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
