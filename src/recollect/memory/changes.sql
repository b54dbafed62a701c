-- record
-- Changes behind those that there are; the function is in migration 26.
select last
from record_changes(
    :namespace, :events::text[], :kinds::text[], :item_ids::text[], :details::text[], :authors::text[], :doors::text[]
);

-- since
-- The next changes behind a number.
select number, at, event, kind, item_id, author, door, detail
from changes
where namespace = :namespace and number > :since
order by number
limit :limit;

-- last
-- The number of the last change; no row if there was none.
select last from change_counters where namespace = :namespace;

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
