-- Questions for permission by the pattern that their context has: every call of a tool looks for earlier ones.
CREATE INDEX breadcrumbs_pattern ON breadcrumbs
  (audience, schema_name, CASE WHEN json_valid(context) THEN json_extract(context, '$."pattern"') END)
  WHERE CASE WHEN json_valid(context) THEN json_extract(context, '$."pattern"') END IS NOT NULL;
