-- page
-- The next memories behind an id that nothing has happened to since a moment, but for pinned ones. One that was only
-- ever stored is as old as it says, also if it was stored later; others as old as what happened to them last.
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
