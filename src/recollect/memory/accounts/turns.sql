-- lock
-- Locks a model's row, making it if need be, and tells when the next request may start.
insert into model_turns (namespace, model, free_at)
values (:namespace, :model, 'epoch')
on conflict (namespace, model) do update set model = excluded.model
returning free_at;

-- under_way
-- How many requests a model has that have not expired, and what time it is by the database's clock.
select count(*) as requests, now() as now
from model_requests
where namespace = :namespace and model = :model and expires_at > now();

-- advance
-- Moves the time of the next request.
update model_turns set free_at = :next_at where namespace = :namespace and model = :model;

-- postpone
-- Lets no request start for so many seconds.
update model_turns set free_at = now() + make_interval(secs => :seconds)
where namespace = :namespace and model = :model and free_at < now() + make_interval(secs => :seconds);

-- start
-- A request that is about to be made.
insert into model_requests (namespace, model, id, expires_at) values (:namespace, :model, :request_id, :expires_at);

-- finish
-- A request that is over, and those that were never finished.
delete from model_requests
where namespace = :namespace and model = :model and (id = :request_id or expires_at <= now());
