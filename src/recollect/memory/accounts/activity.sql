-- add
-- Adds what a process has counted.
insert into activity (namespace, hour, recalls, degraded, failed)
select :namespace, counted.hour, counted.recalls, counted.degraded, counted.failed
from unnest(:hours::timestamptz[], :recalls::bigint[], :degraded::bigint[], :failed::bigint[])
    as counted (hour, recalls, degraded, failed)
order by counted.hour
on conflict (namespace, hour)
do update set recalls = activity.recalls + excluded.recalls, degraded = activity.degraded + excluded.degraded,
              failed = activity.failed + excluded.failed;

-- is_filled
-- Whether there is anything to recall.
select exists (select from passages where namespace = :namespace) as is_filled;

-- remove_before
-- Drops what is too old to be shown.
delete from activity where namespace = :namespace and hour < :moment;

-- between
-- Recalls by period: the first begins at the first moment and ends at the second, and so on.
select width_bucket(hour, :moments::timestamptz[]) - 1 as period,
       sum(recalls)::bigint as recalls, sum(degraded)::bigint as degraded, sum(failed)::bigint as failed
from activity
where namespace = :namespace and hour >= (:moments::timestamptz[])[1]
group by period;
