-- add
-- One lesson, with the query that led to it.
insert into episodes (namespace, query, reward, reflection)
values (:namespace, :query, :reward, :reflection)
returning id, created_at;

-- find
-- Some episodes by their ids: of some time, and with enough reward.
select id, query, reward, reflection, created_at
from episodes
where namespace = :namespace and id = any(:ids::bigint[]) and created_at >= :since
  and (:until::timestamptz is null or created_at <= :until)
  and (:reward_min::float8 is null or reward >= :reward_min);

-- similar
-- Episodes by the cosine of their query's nearest passage. The filters stand inside, so that a lesson with a high
-- reward is found behind any number of nearer ones with a low one.
-- Audit episode id
select episodes.id, episodes.query, episodes.reward, episodes.reflection, episodes.created_at,
       max(1 - (vectors.embedding <=> :vector::text::halfvec)) as similarity
from episodes
join passages on passages.namespace = :namespace and passages.kind = 'episode' and passages.item_id = episodes.id::text
join passage_vectors vectors on vectors.namespace = :namespace and vectors.id = passages.id and vectors.model = :model
where episodes.namespace = :namespace and episodes.created_at >= :since
  and (:until::timestamptz is null or episodes.created_at <= :until)
  and (:reward_min::float8 is null or episodes.reward >= :reward_min)
group by episodes.namespace, episodes.id
having max(1 - (vectors.embedding <=> :vector::text::halfvec)) >= :min_similarity
order by similarity desc, episodes.id
limit :limit;

-- remove
-- One episode.
delete from episodes where namespace = :namespace and id = :episode_id returning id;

-- page_episodes
-- Episodes.
-- Audit episode id
select (to_jsonb(r) - 'namespace')::text as record, r.id
from episodes r
where r.namespace = :namespace and :user_id::text is null and (:after_id::bigint is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_episodes
-- Adds episodes that are not there.
insert into episodes overriding system value
select * from jsonb_populate_recordset(null::episodes, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning id;

-- compare_episodes
-- Compares given records with the stored ones.
select given.id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::episodes, :records::text::jsonb) as given
left join episodes stored on stored.namespace = :namespace and stored.id = given.id;

-- size_episodes
-- Rows up to a bound, along an index, to be counted.
select 1 as row from episodes where namespace = :namespace order by id limit :limit;

-- shown_episodes
-- Some episodes as the feed shows them.
-- Audit episode item_id
select id::text as item_id,
       jsonb_build_object(
           'text', left(query, :most::integer), 'reward', reward, 'reflection', left(reflection, :most)
       ) as content, created_at as at
from episodes
where namespace = :namespace and id = any(:ids::text[]::bigint[]);
