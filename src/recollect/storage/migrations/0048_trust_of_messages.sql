-- Where a message comes from. Null where its role says it; a system message of a caller who is no admin is a user's.
alter table messages add column trust text;
