-- Creates a new object with the same spec, as an object runs once.

-- copy leaves out what is empty, as Lua does not tell an empty list from an empty object. Only in a pod template that makes a difference.
local function copy(value, field)
  if type(value) ~= "table" then
    return value
  end
  local copied = {}
  for key, member in pairs(value) do
    if type(member) == "table" and next(member) == nil then
      if field == "podTemplate" then
        error("the patch of podTemplate has an empty list or object, which this action cannot copy: use kubectl redquake rerun " .. obj.metadata.name)
      end
    else
      copied[key] = copy(member, field == "podTemplate" and field or key)
    end
  end
  return copied
end

local spec = copy(obj.spec, "spec")
spec.abort, spec.suspend = nil, nil

local original = obj.metadata.name
if obj.metadata.annotations ~= nil and obj.metadata.annotations["redquake.dev/rerun-of"] ~= nil then
  original = obj.metadata.annotations["redquake.dev/rerun-of"]
end

return {
  {
    ["operation"] = "create",
    ["resource"] = {
      ["apiVersion"] = obj.apiVersion,
      ["kind"] = obj.kind,
      ["metadata"] = {
        ["generateName"] = original .. "-",
        ["namespace"] = obj.metadata.namespace,
        ["annotations"] = { ["redquake.dev/rerun-of"] = original },
      },
      ["spec"] = spec,
    },
  },
}
