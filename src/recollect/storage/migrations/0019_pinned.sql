-- Messages that summaries never take the place of, found again however long their session is.
create index messages_pinned on messages (namespace, session_id, position)
where role = 'system' and (position = 0 or metadata @> '{"pinned": true}');
