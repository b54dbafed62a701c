-- The only user, or agent, whose memory a key is for.
alter table api_keys add column only_user text;
alter table api_keys add column only_agent text;
