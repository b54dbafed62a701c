-- add
-- One lesson, with the query that led to it.
insert into episodes (namespace, query, reward, reflection)
values ($1, $2, $3, $4)
returning id, created_at;

-- find
-- Some episodes by their ids: recent enough, and with enough reward.
select id, query, reward, reflection, created_at
from episodes
where namespace = $1 and id = any($2::bigint[]) and created_at >= $3 and ($4::float8 is null or reward >= $4);

-- similar
-- Episodes by the cosine of their query's nearest passage. The filters stand inside, so that a lesson with a high
-- reward is found behind any number of nearer ones with a low one.
select episodes.id, episodes.query, episodes.reward, episodes.reflection, episodes.created_at,
       max(1 - (vectors.embedding <=> $2::text::halfvec)) as similarity
from episodes
join passages on passages.namespace = $1 and passages.kind = 'episode' and passages.item_id = episodes.id::text
join passage_vectors vectors on vectors.namespace = $1 and vectors.id = passages.id and vectors.model = $3
where episodes.namespace = $1 and episodes.created_at >= $4 and ($5::float8 is null or episodes.reward >= $5)
group by episodes.namespace, episodes.id
having max(1 - (vectors.embedding <=> $2::text::halfvec)) >= $6
order by similarity desc, episodes.id
limit $7;

-- remove
-- One episode.
delete from episodes where namespace = $1 and id = $2 returning id;
