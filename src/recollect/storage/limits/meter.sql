-- charge
-- Adds what a transaction stores to the counts of the day. The order is fixed, so that two writers cannot deadlock.
-- Limit none: it shows only how much the caller has stored.
insert into quota_use as held (namespace, kind, subject, period, since, rows, bytes)
select :namespace, given.kind, given.subject, 'day', :since::timestamptz, given.rows, given.bytes
from unnest(:kinds::text[], :subjects::text[], :rows::bigint[], :bytes::bigint[]) as given (kind, subject, rows, bytes)
order by given.kind, given.subject
on conflict (namespace, kind, subject, period)
do update set rows = case when held.since < excluded.since then 0 else held.rows end + excluded.rows,
              bytes = case when held.since < excluded.since then 0 else held.bytes end + excluded.bytes,
              since = case when held.since < excluded.since then excluded.since else held.since end
returning kind, subject, rows, bytes;

-- used
-- The counts of the day.
-- Limit none: it shows only how much the caller has stored.
select held.kind, held.subject, held.rows, held.bytes
from quota_use as held
join unnest(:kinds::text[], :subjects::text[]) as given (kind, subject)
    on given.kind = held.kind and given.subject = held.subject
where held.namespace = :namespace and held.period = 'day' and held.since = :since::timestamptz;
