-- What a key may do, until when, and when it was last used. Keys that were there before may do everything, for ever.
alter table api_keys add column role text not null default 'admin';
alter table api_keys add column expires_at timestamptz;
alter table api_keys add column last_used_at timestamptz;
