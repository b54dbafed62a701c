-- add_version
-- What was done to a file, by whom, and what it holds since then.
insert into store_versions (namespace, id, store_id, file_id, user_id, operation, path, content, sha256, author, door)
values (
    :namespace, :id, :store_id, :file_id, :user_id, :operation, :path, :content, :sha256, :author, :door
)
returning created_at;

-- add
-- One file.
insert into store_files (namespace, id, store_id, user_id, path, content, sha256, version_id, created_at, updated_at)
values (:namespace, :id, :store_id, :user_id, :path, :content, :sha256, :version_id, :at, :at);

-- hold_version
-- Notes that what a file says is held back, before it says something else or is gone.
update store_versions set held = true
where store_versions.namespace = :namespace and id = :version_id
  and exists (
      select from held
      where held.namespace = :namespace and held.kind = 'file' and held.item_id = :file_id::uuid::text
        and held.state = 'held'
  );

-- change
-- The new path and content of a file.
update store_files
set path = :path, content = :content, sha256 = :sha256, version_id = :version_id, updated_at = :at
where namespace = :namespace and id = :id;

-- find
-- One file of a store.
-- Audit file id
select id, store_id, user_id, path, content, octet_length(content) as size, sha256, version_id, created_at, updated_at
from store_files
where namespace = :namespace and store_id = :store_id and id = :id;

-- lock
-- The same, locked until the transaction ends.
select id, store_id, user_id, path, content, octet_length(content) as size, sha256, version_id, created_at, updated_at
from store_files
where namespace = :namespace and store_id = :store_id and id = :id
for update;

-- hold
-- Some files, locked in id order.
select id from store_files where namespace = :namespace and id = any(:ids::uuid[]) order by id for update;

-- in_the_way
-- A file at a path, at one of the folders above it, or below it as if it were a folder.
select id, path
from store_files
where namespace = :namespace and store_id = :store_id and id is distinct from :except_id::uuid
  and (path = any(:above::text[]) or (path > :below and path < :beyond))
order by path
limit 1;

-- count_in_store
-- How many files a store has.
select count(*) as files from store_files where namespace = :namespace and store_id = :store_id;

-- entries
-- What is in a folder, in the order of bytes: files, and instead of files below a depth the folders that they are in.
select entry
from (
    select distinct (
        case when :depth::integer = 0 or cardinality(parts) <= :depth then path
             else :prefix::text || array_to_string(parts[1:(:depth)], '/') || '/' end
    ) collate "C" as entry
    from (
        select path, string_to_array(substr(path, length(:prefix) + 1), '/') as parts
        from store_files
        where namespace = :namespace and store_id = :store_id and path >= :prefix and path < :beyond
    ) as within
) as entries
where entry > :behind
order by entry
limit :limit;

-- at_paths
-- The files at some paths; only where they are asked for with their contents, and in lists without those that are held
-- back.
-- Audit file id
select id, store_id, user_id, path,
       case when :with_content::boolean and (:with_held::boolean or not exists (
           select from held
           where held.namespace = :namespace and held.kind = 'file' and held.item_id = store_files.id::text
             and held.state = 'held'
       )) then content end as content,
       octet_length(content) as size, sha256, version_id, created_at, updated_at
from store_files
where namespace = :namespace and store_id = :store_id and path = any(:paths::text[]);

-- in_stores
-- The files of some stores.
select id from store_files where namespace = :namespace and store_id = any(:store_ids::uuid[]) order by id;

-- some_in_store
-- Some files of a store.
select id from store_files where namespace = :namespace and store_id = :store_id order by id limit :limit;

-- of_user
-- The files of a user behind an id, in id order.
select id from store_files
where namespace = :namespace and user_id = :user_id and id > :behind
order by id
limit :limit;

-- remove
-- Some files.
delete from store_files where namespace = :namespace and id = any(:ids::uuid[]) returning id;

-- remove_versions
-- All that was ever done to some files.
delete from store_versions where namespace = :namespace and file_id = any(:file_ids::uuid[]) returning id;

-- remove_versions_in_stores
-- All that was ever done in some stores.
delete from store_versions where namespace = :namespace and store_id = any(:store_ids::uuid[]) returning id;

-- count_versions
-- How many versions some files have.
select count(*) as versions from store_versions where namespace = :namespace and file_id = any(:file_ids::uuid[]);

-- count_versions_of_deleted
-- How many versions some stores have of files that are no more.
select count(*) as versions
from store_versions v
where v.namespace = :namespace and v.store_id = any(:store_ids::uuid[])
  and not exists (select from store_files f where f.namespace = :namespace and f.id = v.file_id);

-- version
-- One version of a file in a store.
-- Audit file file_id
select id, store_id, file_id, operation, path, content, octet_length(content) as size, sha256, author, created_at,
       redacted_at, redacted_by
from store_versions
where namespace = :namespace and store_id = :store_id and id = :id;

-- newest_versions
-- Versions from behind a place in the list, newest first; only where they are asked for with their contents, and without
-- those of files that are held back.
-- Audit file file_id
select id, store_id, file_id, operation, path,
       case when :with_content::boolean and store_versions.held is not true and not exists (
           select from held
           where held.namespace = :namespace and held.kind = 'file' and held.item_id = store_versions.file_id::text
             and held.state = 'held'
       ) then content end as content,
       octet_length(content) as size, sha256, author, created_at, redacted_at, redacted_by
from store_versions
where namespace = :namespace and store_id = :store_id
  and (:file_id::uuid is null or file_id = :file_id)
  and (:operation::text is null or operation = :operation)
  and (:author::text is null or author = :author)
  and (:since::timestamptz is null or created_at >= :since)
  and (:until::timestamptz is null or created_at <= :until)
  and (:behind_time::timestamptz is null or (created_at, id) < (:behind_time, :behind_id::uuid))
order by created_at desc, id desc
limit :limit;

-- redact
-- A version that says no more what the file was.
-- Role admin: its content is gone for good.
update store_versions
set path = null, content = null, sha256 = null, redacted_at = now(), redacted_by = :author
where namespace = :namespace and store_id = :store_id and id = :id and redacted_at is null
returning id;

-- page_store_files
-- Files.
-- Audit file id
select (to_jsonb(r) - 'namespace')::text as record, r.id
from store_files r
where r.namespace = :namespace and (:user_id::text is null or r.user_id = :user_id)
  and (:after_id::uuid is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_store_files
-- Adds files that are not there, to stores that are.
insert into store_files overriding system value
select given.* from jsonb_populate_recordset(null::store_files, :records::text::jsonb) as given
join memory_stores s on s.namespace = :namespace and s.id = given.store_id
where given.namespace = :namespace
on conflict do nothing
returning id;

-- compare_store_files
-- Compares given records with the stored ones.
select given.id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::store_files, :records::text::jsonb) as given
left join store_files stored on stored.namespace = :namespace and stored.id = given.id;

-- size_store_files
-- Rows up to a bound, along an index, to be counted.
select 1 as row from store_files where namespace = :namespace order by id limit :limit;

-- shown_store_files
-- Some files as the feed shows them.
-- Audit file item_id
select id::text as item_id,
       jsonb_build_object('text', left(content, :most::integer), 'user_id', user_id, 'path', path, 'store', store_id)
           as content, updated_at as at
from store_files
where namespace = :namespace and id = any(:ids::text[]::uuid[]);

-- page_store_versions
-- Versions of files.
-- Audit file_version id
select (to_jsonb(r) - 'namespace')::text as record, r.id
from store_versions r
where r.namespace = :namespace and (:user_id::text is null or r.user_id = :user_id)
  and (:after_id::uuid is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_store_versions
-- Adds versions that are not there, to stores that are.
insert into store_versions overriding system value
select given.* from jsonb_populate_recordset(null::store_versions, :records::text::jsonb) as given
join memory_stores s on s.namespace = :namespace and s.id = given.store_id
where given.namespace = :namespace
on conflict do nothing
returning id;

-- compare_store_versions
-- Compares given records with the stored ones.
select given.id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::store_versions, :records::text::jsonb) as given
left join store_versions stored on stored.namespace = :namespace and stored.id = given.id;
