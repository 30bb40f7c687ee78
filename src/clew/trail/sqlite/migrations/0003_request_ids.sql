-- Requests by the id that their context has, in both spellings. Selectors name these paths literally: see selector_sql.
-- A damaged record is not in these indexes, so that the others can still be read and it can be deleted.
CREATE INDEX breadcrumbs_request_id ON breadcrumbs
  (audience, schema_name, CASE WHEN json_valid(context) THEN json_extract(context, '$."request_id"') END)
  WHERE CASE WHEN json_valid(context) THEN json_extract(context, '$."request_id"') END IS NOT NULL;
CREATE INDEX breadcrumbs_requestId ON breadcrumbs
  (audience, schema_name, CASE WHEN json_valid(context) THEN json_extract(context, '$."requestId"') END)
  WHERE CASE WHEN json_valid(context) THEN json_extract(context, '$."requestId"') END IS NOT NULL;
