local is = {}
if obj.status ~= nil then
  for _, condition in ipairs(obj.status.conditions or {}) do
    is[condition.type] = condition.status == "True"
  end
end
local over = is.Complete or is.Failed

local actions = {}
if not over and not obj.spec.abort then
  actions["abort"] = { ["iconClass"] = "fa fa-fw fa-stop" }
  if obj.spec.suspend then
    actions["resume"] = { ["iconClass"] = "fa fa-fw fa-play" }
  elseif obj.kind ~= "RedisFault" or obj.status == nil or obj.status.injectedAt == nil then -- an injected fault is not reverted by being suspended
    actions["suspend"] = { ["iconClass"] = "fa fa-fw fa-pause" }
  end
end
if over then
  actions["rerun"] = { ["iconClass"] = "fa fa-fw fa-redo" }
end
return actions
