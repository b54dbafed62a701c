-- end_silent
-- Jobs of processes that ended without saying so.
update jobs set state = 'lost', ended_at = told_at
where namespace = :namespace and ended_at is null and told_at < now() - make_interval(secs => :seconds);

-- remove_old
-- Jobs that ended long ago.
-- Role write: whoever begins a job does this.
delete from jobs where namespace = :namespace and ended_at < now() - make_interval(days => :days::integer);

-- add
-- A job that begins, unless one of its kind is running.
-- Audit job id
insert into jobs (namespace, id, kind, about, author)
values (:namespace, :job_id, :kind, :about, :author)
on conflict (namespace, kind) where ended_at is null do nothing
returning id;

-- tell
-- Reports progress, which is also the heartbeat of a running job. None if the job is not to go on.
update jobs set done = :done, total = :total, told_at = now()
where namespace = :namespace and id = :job_id and state = 'running' and ended_at is null
returning id;

-- ask_to_stop
-- Asks the process that runs a job to stop it. Until the job has ended, no other of its kind may begin.
-- Audit job job_id
update jobs set state = 'stopping', about = about || :by::text::jsonb
where namespace = :namespace and id = :job_id and ended_at is null
returning id;

-- finish
-- What came of a job.
update jobs set state = :state, done = :done, total = :total, report = :report, told_at = now(), ended_at = now()
where namespace = :namespace and id = :job_id and ended_at is null;

-- find
-- One job with its report; it is lost if it has not reported for so many seconds.
-- Audit job id
select id, kind, about, author,
       case
           when ended_at is null and told_at < now() - make_interval(secs => :seconds) then 'lost' else state
       end as state,
       done, total, started_at, told_at, ended_at, report
from jobs
where namespace = :namespace and id = :job_id;

-- recent
-- The last jobs, newest first, without their reports; lost ones as above.
select id, kind, about, author,
       case
           when ended_at is null and told_at < now() - make_interval(secs => :seconds) then 'lost' else state
       end as state,
       done, total, started_at, told_at, ended_at, '{}'::jsonb as report
from jobs
where namespace = :namespace
order by id desc
limit :limit;

-- clear
-- Leaves of jobs that ended only what they were and when: names of files and reports may quote what was forgotten.
update jobs set about = '{}', report = '{}'
where namespace = :namespace and ended_at is not null and (about <> '{}' or report <> '{}');
