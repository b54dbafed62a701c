-- lock
-- Locks the end of the chain until the transaction ends, and starts the chain if there is none.
insert into audit_heads (namespace, number, at, hash, anchor_hash)
values (:namespace, 0, :at, :start, :start)
on conflict (namespace) do update set number = audit_heads.number
returning number, at, hash;

-- append
-- Adds lines at the end.
insert into audit_lines (namespace, number, at, key_id, author, door, action, outcome, request_id, touched, hash)
select :namespace, l.number, l.at, l.key_id, l.author, l.door, l.action, l.outcome, l.request_id, l.touched::jsonb, l.hash
from unnest(
    :numbers::bigint[], :times::timestamptz[], :key_ids::text[], :authors::text[], :doors::text[], :actions::text[],
    :outcomes::text[], :request_ids::text[], :touched::text[], :hashes::bytea[]
) as l (number, at, key_id, author, door, action, outcome, request_id, touched, hash)
returning number;

-- advance
-- The new end.
update audit_heads set number = :number, at = :at, hash = :hash where namespace = :namespace;

-- head
-- Both ends of the chain.
-- Role admin: who read and changed what is for those who manage keys.
select number, at, hash, anchor, anchor_hash from audit_heads where namespace = :namespace;

-- since
-- The next lines after a number.
-- Role admin: as above.
select number, at, key_id, author, door, action, outcome, request_id, touched, hash
from audit_lines
where namespace = :namespace and number > :since
order by number
limit :limit;

-- newest
-- Lines in a range of numbers that match some filters, newest first.
-- Role admin: as above.
select number, at, key_id, author, door, action, outcome, request_id, touched, hash
from audit_lines
where namespace = :namespace
  and number < :before
  and number >= :least
  and (:by::text is null or key_id = :by or author = :by)
  and (:door::text is null or door = :door)
  and (:action::text is null or action = :action)
  and (:outcome::text is null or outcome = :outcome)
  and (:touched::text is null or touched @> :touched::jsonb)
order by number desc
limit :limit;

-- first_from
-- The first line at or after a moment.
-- Role admin: as above.
select number from audit_lines where namespace = :namespace and at >= :moment order by number limit 1;

-- hash_of
-- The hash of one line.
-- Role admin: as above.
select hash from audit_lines where namespace = :namespace and number = :number;

-- remove
-- The lines up to a number.
delete from audit_lines where namespace = :namespace and number <= :number;

-- anchor
-- Where the chain begins from now on.
update audit_heads set anchor = :number, anchor_hash = :hash where namespace = :namespace;
