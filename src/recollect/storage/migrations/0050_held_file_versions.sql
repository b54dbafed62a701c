-- Whether what a file said was held back when the file was changed or deleted; null is no.
alter table store_versions add column held boolean;
