-- versions
-- The last past versions of a memory, the newest first.
-- Limit memory memory_id.
-- Audit memory memory_id
select text, category, metadata, valid_from, valid_until, key, expires_at, pinned, until
from memory_versions
where namespace = :namespace and memory_id = :memory_id
order by number desc
limit :limit;

-- superseded
-- What a memory took out of force, even if that was undone later, and why.
select versions.memory_id, versions.until as at, history.detail ->> 'because' as because
from memory_versions versions
left join memory_history history
    on history.namespace = :namespace and history.memory_id = versions.memory_id and history.event = 'supersede'
    and history.at = versions.until
where versions.namespace = :namespace and versions.superseded_by = :memory_id
order by versions.until, versions.memory_id
limit :limit;

-- changes
-- The last changes of an item, the newest first.
select at, event, author, door, detail
from changes
where namespace = :namespace and kind = :kind and item_id = :item_id
order by number desc
limit :limit;

-- firsts
-- The first change of each of some items: who stored it, or that it was imported.
select distinct on (item_id) item_id, event, author, door
from changes
where namespace = :namespace and kind = :kind and item_id = any(:item_ids::text[])
order by item_id, number;

-- turns
-- The turns that some messages came in, by the number of the message among those given.
select places.number, changes.at, changes.event, changes.author, changes.door
from unnest(:session_ids::text[], :positions::bigint[]) with ordinality as places (session_id, position, number)
join changes
    on changes.namespace = :namespace and changes.kind = 'message' and changes.item_id = places.session_id
    and (changes.detail ->> 'first')::bigint <= places.position
    and (changes.detail ->> 'first')::bigint + (changes.detail ->> 'count')::bigint > places.position
order by places.number, changes.number;

-- metadata
-- The metadata of an item, as its passages have it.
select metadata from passages
where namespace = :namespace and kind = :kind and item_id = :item_id and part = 0
limit 1;
