-- add
-- A client that registered.
-- Role write: registering gives a client no access.
insert into oauth_clients (namespace, id, name, redirect_uris, secret_digest)
values (:namespace, :client_id, :name, :redirect_uris, :secret_digest)
returning id, name, redirect_uris, secret_digest, created_at;

-- find
-- One by its id.
select id, name, redirect_uris, secret_digest, created_at
from oauth_clients
where namespace = :namespace and id = :client_id;

-- note_use
-- Notes that a client got tokens, about once a day.
update oauth_clients set last_used_at = now()
where namespace = :namespace and id = :client_id
  and (last_used_at is null or last_used_at < now() - interval '1 day');

-- count_unused
-- How many of the clients that were never connected are new, up to a bound.
select count(*) as clients
from (
    select from oauth_clients
    where namespace = :namespace and last_used_at is null and created_at > now() - make_interval(secs => :kept_seconds)
    limit :most
) as some_of_them;

-- remove_unused
-- Clients that were never connected and are too old or too many, but none that is new; and those idle for too long.
delete from oauth_clients
where namespace = :namespace and (
    last_used_at < now() - make_interval(days => :idle_days)
    or last_used_at is null and (
        created_at < now() - make_interval(days => :unused_days)
        or created_at < now() - make_interval(secs => :kept_seconds) and id in (
            select id from oauth_clients
            where namespace = :namespace and last_used_at is null
            order by created_at desc, id
            offset :most
        )
    )
);
