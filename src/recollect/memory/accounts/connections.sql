-- add
-- A client that somebody connected with a key.
insert into connections
    (namespace, id, key_id, client_id, client_name, redirect_uri, resource, code_challenge, role)
values (:namespace, :id, :key_id, :client_id, :client_name, :redirect_uri, :resource, :code_challenge, :role);

-- add_token
-- A code or token, by its hash, with its lifetime in seconds.
insert into connection_tokens (namespace, digest, connection_id, kind, role, expires_at)
values (:namespace, :digest, :connection_id, :kind, :role, now() + make_interval(secs => :seconds));

-- find
-- A code or token in any namespace, with its connection; no row once its key is revoked or has expired.
select t.namespace, t.connection_id, t.kind, t.role, t.expires_at <= now() as expired, t.used_at is not null as used,
       c.client_id, c.redirect_uri, c.resource, c.code_challenge, c.last_used_at, k.digest as key_digest,
       k.id as key_id, k.label
from connection_tokens t
join connections c on c.namespace = t.namespace and c.id = t.connection_id
join api_keys k on k.namespace = c.namespace and k.id = c.key_id
where t.digest = :digest and k.revoked_at is null and (k.expires_at is null or k.expires_at > now());

-- use_up
-- Marks a code or refresh token as used; no row if it was used before.
update connection_tokens set used_at = now()
where namespace = :namespace and digest = :digest and used_at is null
returning connection_id;

-- note_use
-- Notes that a connection was used, about once a minute.
update connections set last_used_at = now()
where namespace = :namespace and id = :id and (last_used_at is null or last_used_at < now() - interval '1 minute');

-- of_namespace
-- Connections that still work, newest first.
-- Role admin: only those who manage keys see who uses them.
-- Audit connection id
select c.id, c.key_id, c.client_name, c.redirect_uri, c.role, c.created_at, c.last_used_at
from connections c
join api_keys k on k.namespace = c.namespace and k.id = c.key_id
where c.namespace = :namespace and k.namespace = :namespace
  and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
  and exists (
      select from connection_tokens t
      where t.namespace = :namespace and t.connection_id = c.id and t.kind <> 'code' and t.used_at is null
        and t.expires_at > now()
  )
order by c.created_at desc, c.id
limit :limit;

-- works
-- Whether a connection has a token that works.
select exists (
    select from connection_tokens
    where namespace = :namespace and connection_id = :id and kind <> 'code' and used_at is null and expires_at > now()
) as works;

-- end_tokens
-- The codes and tokens of a connection.
delete from connection_tokens where namespace = :namespace and connection_id = :id;

-- end_connection
-- The connection itself.
-- Audit connection id
delete from connections where namespace = :namespace and id = :id returning id;

-- end_tokens_of_keys
-- The codes and tokens of connections of some keys.
delete from connection_tokens
where namespace = :namespace and connection_id in (
    select id from connections where namespace = :namespace and key_id = any(:key_ids::text[])
);

-- end_of_keys
-- Those connections.
-- Audit connection id
delete from connections where namespace = :namespace and key_id = any(:key_ids::text[]) returning id;

-- remove_expired
-- Expired codes and tokens. A used code is kept for as long as its connection, so that its reuse is noticed.
delete from connection_tokens t
where t.namespace = :namespace and t.expires_at < now()
  and not (t.kind = 'code' and t.used_at is not null and exists (
      select from connection_tokens other
      where other.namespace = :namespace and other.connection_id = t.connection_id and other.kind <> 'code'
        and other.expires_at >= now()
  ));

-- remove_ended
-- Connections without codes or tokens.
delete from connections
where namespace = :namespace
  and id not in (select connection_id from connection_tokens where namespace = :namespace);
