-- The one search index. Everything that can be recalled is cut into passages, written with its item.
create table passages (
    namespace text not null,
    id bigint generated always as identity,
    kind text not null,
    item_id text not null,
    part integer not null,
    owner text not null,
    agent_id text,
    session_id text,
    position bigint,
    role text,
    speaker text,
    category text,
    metadata jsonb,
    at timestamptz not null,
    text text not null,
    primary key (namespace, id),
    unique (namespace, kind, item_id, part)
);
create index passages_by_session on passages (namespace, session_id, position) where session_id is not null;
create index passages_by_agent on passages (namespace, agent_id) where agent_id is not null;
create index passages_by_speaker on passages (namespace, owner, speaker) where speaker is not null;

alter table passages enable row level security;
alter table passages force row level security;
create policy own_namespace on passages using (namespace = current_setting('recollect.namespace', true));

-- The tables derived from passages hold no text and carry no policy: the planner would not use the GIN index through
-- one. Every read of them joins passages or is of counts alone.

-- Words: keys of (namespace, owner, term) and (namespace, term) find, BM25's saturated term frequencies score.
create table passage_words (
    namespace text not null,
    id bigint not null,
    kind text not null,
    keys bigint[] not null,
    weights sparsevec(1000000000) not null,
    primary key (namespace, id)
);
-- New keys gather in a short list first: that makes writes more than twice as fast, and searches read it along.
create index passage_words_by_key on passage_words using gin (keys)
with (fastupdate = on, gin_pending_list_limit = 256);

-- Meaning: vectors in the deployment's own space, inline, because an exact scan reads all of an owner's.
create table passage_vectors (
    namespace text not null,
    id bigint not null,
    kind text not null,
    owner text not null,
    model text not null,
    embedding halfvec not null,
    primary key (namespace, id)
);
alter table passage_vectors alter column embedding set storage plain;
create index passage_vectors_by_owner on passage_vectors (namespace, owner);

-- What the indexer has to do. `counted` passages wait only for a model.
create table passage_queue (
    namespace text not null,
    id bigint not null,
    owner text not null,
    counted boolean not null default false,
    primary key (namespace, id)
)
-- Rows come and go by the thousand: swept early, or searches would step over the dead ones.
with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index passage_queue_by_owner on passage_queue (namespace, owner);

-- In how many passages a term stands; term 0 counts the passages themselves.
create table term_stats (
    namespace text not null,
    term integer not null,
    df bigint not null,
    primary key (namespace, term)
);
