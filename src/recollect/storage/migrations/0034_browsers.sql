-- Browsers that signed in to the console: each stands for a key until a time, and is known by the hash of its cookie.
alter table api_keys add column browser_of text;
alter table api_keys add column browser_until timestamptz;
create index api_keys_of_browsers on api_keys (namespace, browser_of) where browser_of is not null;
