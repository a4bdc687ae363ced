-- Health of a RedisExperimentSchedule. It is as healthy as its last run, and Degraded while no runs can be created. A run that is under way does not change it.
local hs = { status = "Progressing", message = "waiting for the operator to observe the object" }
if obj.status == nil or (obj.status.observedGeneration or -1) < (obj.metadata.generation or 0) then
  return hs
end

local is, why = {}, {}
for _, condition in ipairs(obj.status.conditions or {}) do
  is[condition.type], why[condition.type] = condition.status, condition.message
end
hs.message = why.Ready or hs.message

if is.Ready == "False" then
  hs.status = "Degraded"
elseif is.Suspended == "True" then
  hs.status, hs.message = "Suspended", why.Suspended
elseif is.Regressed == "True" then
  hs.status, hs.message = "Degraded", why.Regressed
elseif obj.status.verdict == "Fail" then
  hs.status, hs.message = "Degraded", "the verdict of the last run is Fail; " .. hs.message
elseif is.Ready == "True" then
  hs.status = "Healthy"
end
return hs
