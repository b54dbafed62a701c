-- put
-- Items that somebody should look at; one that is here already is judged anew.
-- Limit none: of what the caller stores.
insert into held (namespace, kind, item_id, state, reasons, trust, digest, author, door)
select :namespace, h.kind, h.item_id, h.state, string_to_array(h.reasons, E'\n'), h.trust, h.digest, h.author, h.door
from unnest(
    :kinds::text[], :item_ids::text[], :states::text[], :reasons::text[], :trusts::text[], :digests::bytea[],
    :authors::text[], :doors::text[]
) as h (kind, item_id, state, reasons, trust, digest, author, door)
on conflict (namespace, kind, item_id) do update
set state = excluded.state, reasons = excluded.reasons, trust = excluded.trust, digest = excluded.digest,
    author = excluded.author, door = excluded.door, at = excluded.at, decided_by = null, decided_at = null;

-- find
-- What is known of some items of one kind.
-- Limit none: of what the caller stores or was shown.
select kind, item_id, state, reasons, trust, digest, author, door, at, decided_by, decided_at
from held
where namespace = :namespace and kind = :kind and item_id = any(:item_ids::text[]);

-- lock
-- One item, until the transaction ends.
select kind, item_id, state, reasons, trust, digest, author, door, at, decided_by, decided_at
from held
where namespace = :namespace and kind = :kind and item_id = :item_id
for update;

-- decide
-- A person has looked at it.
update held set state = 'released', decided_by = :decided_by, decided_at = now()
where namespace = :namespace and kind = :kind and item_id = :item_id;

-- remove
-- Items that are gone, or say something else now.
-- Limit none: of what the caller has changed or deleted.
-- Role write: a change replaces them.
delete from held where namespace = :namespace and kind = :kind and item_id = any(:item_ids::text[]);

-- retire
-- The past version of an item that is held is held, too.
-- Limit none: of what the caller has changed.
insert into held (namespace, kind, item_id, state, reasons, trust, digest, author, door)
select :namespace, :past_kind, :past_item_id, state, reasons, trust, digest, author, door
from held
where namespace = :namespace and kind = :kind and item_id = :item_id and state = 'held'
on conflict (namespace, kind, item_id) do nothing;

-- page
-- Items in some states, the newest first, from behind a place in that order. Past versions belong to their memories.
select kind, item_id, state, reasons, trust, digest, author, door, at, decided_by, decided_at
from held
where namespace = :namespace and state = any(:states::text[]) and kind <> 'past_memory'
  and (:behind_time::timestamptz is null or (at, kind, item_id) < (:behind_time, :behind_kind::text, :behind_id::text))
order by at desc, kind desc, item_id desc
limit :limit;

-- count
-- How many there are of each state, up to a bound.
select state, count(*) as items
from (
    select state from held
    where namespace = :namespace and state <> 'released' and kind <> 'past_memory'
    limit :at_most
) as some_of_them
group by state;

-- add_masked
-- Secrets that were written over.
insert into masked (namespace, kind, count)
select :namespace, m.kind, m.count from unnest(:kinds::text[], :counts::bigint[]) as m (kind, count) order by m.kind
on conflict (namespace, kind) do update set count = masked.count + excluded.count;

-- masked
-- How many of each kind.
select kind, count from masked where namespace = :namespace order by kind;
