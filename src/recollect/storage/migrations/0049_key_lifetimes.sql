-- For how long a key was made. Rotation ends it sooner, but its successor is made for as long.
alter table api_keys add column lifetime interval;
update api_keys set lifetime = expires_at - created_at where expires_at is not null;
