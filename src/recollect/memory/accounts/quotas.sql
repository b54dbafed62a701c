-- take_requests
-- Reserves requests of a minute; returns how many all processes have reserved.
insert into quota_use as held (namespace, kind, subject, period, since, requests)
values (:namespace, :kind, :subject, 'minute', :since, :requests)
on conflict (namespace, kind, subject, period)
do update set requests = case when held.since < excluded.since then 0 else held.requests end + excluded.requests,
              since = case when held.since < excluded.since then excluded.since else held.since end
returning requests;

-- used
-- What keys or users have used in the current minute and day.
select subject,
       coalesce(max(requests) filter (where period = 'minute' and since = :minute::timestamptz), 0)::bigint as requests,
       coalesce(max(rows) filter (where period = 'day' and since = :day::timestamptz), 0)::bigint as rows,
       coalesce(max(bytes) filter (where period = 'day' and since = :day::timestamptz), 0)::bigint as bytes
from quota_use
where namespace = :namespace and kind = :kind and subject = any(:subjects::text[])
group by subject;

-- remove_of_user
-- A user's counts.
delete from quota_use where namespace = :namespace and kind = 'user' and subject = :user_id;
