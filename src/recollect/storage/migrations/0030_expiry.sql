-- When passages are over, where it can be asked of all namespaces at once: whoever maintains the database removes what has
-- expired, also in namespaces that it has never heard of.
alter table passage_words add column expires_at timestamptz;

alter table passages no force row level security;
update passage_words
set expires_at = passages.expires_at
from passages
where passages.expires_at is not null and passage_words.namespace = passages.namespace
  and passage_words.id = passages.id;
alter table passages force row level security;

-- By time alone: what is over is found without a look at what is not.
create index passage_words_by_expiry on passage_words (expires_at, namespace) where expires_at is not null;
