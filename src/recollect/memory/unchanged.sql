-- page
-- The next memories after an id that have not changed since a moment, except pinned ones. The age of a memory without
-- past versions counts from created_at, even if it was stored later; that of others from their last change.
select id, user_id, category, since from memories
where namespace = :namespace and id > :behind and not pinned
  and coalesce(updated_at, created_at) < :before
  and (
      since < :before
      or not exists (
          select from memory_versions versions
          where versions.namespace = :namespace and versions.memory_id = memories.id
      )
  )
  and (expires_at is null or expires_at > now())
  and (:user_id::text is null or user_id = :user_id)
  and (:agent_id::text is null or agent_id = :agent_id)
  and (:category::text is null or category = :category)
order by id
limit :limit;
