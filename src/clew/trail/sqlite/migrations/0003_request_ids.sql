-- Requests by the id that their context has, in both spellings. Selectors name these paths literally: see selector_sql.
CREATE INDEX breadcrumbs_request_id ON breadcrumbs (audience, schema_name, json_extract(context, '$."request_id"'))
  WHERE json_extract(context, '$."request_id"') IS NOT NULL;
CREATE INDEX breadcrumbs_requestId ON breadcrumbs (audience, schema_name, json_extract(context, '$."requestId"'))
  WHERE json_extract(context, '$."requestId"') IS NOT NULL;
