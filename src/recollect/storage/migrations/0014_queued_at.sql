-- Since when a passage waits for the indexer. Its own `at` is the time of what was said, which may be long ago.
alter table passage_queue add column queued_at timestamptz not null default now();
