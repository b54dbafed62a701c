-- By this, a text that is to be remembered is found if it is there already.
create index documents_by_content on documents (namespace, hashtextextended(content, 0));
