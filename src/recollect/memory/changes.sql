-- record
-- Changes behind those that there are; the function is in migration 46.
-- Limit none: it tells nothing.
select max(last) as last
from record_changes(
    :namespace, :events::text[], :kinds::text[], :item_ids::text[], :details::text[], :authors::text[], :doors::text[]
);

-- hold
-- Locks the counter of the namespace without counting.
insert into change_counters (namespace, last) values (:namespace, 0)
on conflict (namespace) do update set last = change_counters.last
returning last;

-- since
-- The next changes behind a number.
select number, at, event, kind, item_id, author, door, detail
from changes
where namespace = :namespace and number > :since
order by number
limit :limit;

-- newest
-- The changes ahead of a number and not below another, the newest first; of one kind or event, if given.
select number, at, event, kind, item_id, author, door, detail
from changes
where namespace = :namespace
  and number < :before
  and number >= :least
  and (:kind::text is null or kind = :kind)
  and (:event::text is null or event = :event)
order by number desc
limit :limit;

-- first
-- When the first change was made that is still known; no row if there is none.
-- Limit none: it tells when the memory began.
select at from changes where namespace = :namespace order by number limit 1;

-- last
-- The number of the last change; no row if there was none.
select last from change_counters where namespace = :namespace;

-- before
-- How many changes there were before each of some moments. Numbers and times grow together, so the two changes around a
-- moment are found by halving, for all moments of a span at once: what was erased, and is in the index until the next
-- vacuum, is passed over once. It counts as spread evenly over the time between the two.
with recursive spans (low, low_at, high, high_at, moments, is_found) as (
    select 0::bigint, null::timestamptz, counter.last + 1, null::timestamptz, :moments::timestamptz[], false
    from (select last from change_counters where namespace = :namespace) as counter
    union all
    select part.low, part.low_at, part.high, part.high_at, part.moments, part.is_found
    from (select *, (low + high) / 2 as middle from spans where not is_found) as span
    left join lateral (
        select number, at from changes where namespace = :namespace
          and number >= span.middle and number > span.low and number < span.high
        order by number
        limit 1
    ) as after on true
    left join lateral (
        select number, at from changes where namespace = :namespace
          and number <= span.middle and number > span.low and number < span.high
        order by number desc
        limit 1
    ) as before on true
    cross join lateral (
        select span.low, span.low_at, before.number, before.at,
               array(select m from unnest(span.moments) as m where m <= before.at), false
        union all
        select after.number, after.at, span.high, span.high_at,
               array(select m from unnest(span.moments) as m where m > after.at), false
        union all
        select coalesce(before.number, span.low), coalesce(before.at, span.low_at),
               coalesce(after.number, span.high), coalesce(after.at, span.high_at),
               array(
                   select m from unnest(span.moments) as m
                   where (before.at is null or m > before.at) and (after.at is null or m <= after.at)
               ), true
    ) as part (low, low_at, high, high_at, moments, is_found)
    where cardinality(part.moments) > 0
)
select given.moment,
       coalesce(
           low + floor(
               (high - low - 1) * extract(epoch from given.moment - low_at)
               / nullif(extract(epoch from high_at - low_at), 0)
           )::bigint,
           high - 1
       ) as changes
from spans
cross join unnest(moments) as given (moment)
where is_found;

-- of_item
-- What happened to one item, the oldest first.
select number, at, event, kind, item_id, author, door, detail
from changes
where namespace = :namespace and kind = :kind and item_id = :item_id
order by number;

-- erase
-- All that is known of some items.
delete from changes where namespace = :namespace and kind = :kind and item_id = any(:item_ids::text[]);

-- erase_turn
-- The turn that had a message at a position, if none of its messages is left.
delete from changes c
where c.namespace = :namespace and c.kind = 'message' and c.item_id = :session_id
  and (c.detail ->> 'first')::bigint <= :position::bigint
  and (c.detail ->> 'first')::bigint + (c.detail ->> 'count')::bigint > :position
  and not exists (
      select from messages m
      where m.namespace = :namespace
        and m.session_id = :session_id
        and m.position >= (c.detail ->> 'first')::bigint
        and m.position < (c.detail ->> 'first')::bigint + (c.detail ->> 'count')::bigint
  );
