-- Health of a RedisLoadTest, a RedisFault or a RedisExperiment. A verdict other than Pass is Degraded, and so is a fault without recovery: as a hook, such an
-- object fails its sync.
local hs = { status = "Progressing", message = "waiting for the operator to observe the object" }
if obj.status == nil or (obj.status.observedGeneration or -1) < (obj.metadata.generation or 0) then
  return hs
end

local is, why, reason = {}, {}, {}
for _, condition in ipairs(obj.status.conditions or {}) do
  is[condition.type], why[condition.type], reason[condition.type] = condition.status, condition.message, condition.reason
end
hs.message = why.Complete or hs.message

if is.Failed == "True" then
  hs.status, hs.message = "Degraded", why.Failed
elseif is.Complete == "True" then
  if reason.Complete == "DryRun" then -- which has no verdict to speak of
    hs.status = "Healthy"
  elseif reason.Complete == "Restored" then -- a copy from a backup, which has not run: somebody may let it
    hs.status = "Suspended"
  elseif obj.status.verdict ~= nil and obj.status.verdict ~= "Pass" then
    hs.status, hs.message = "Degraded", "verdict " .. obj.status.verdict .. ": " .. (why.ObjectivesMet or hs.message)
  elseif is.Recovered ~= nil and is.Recovered ~= "True" and obj.status.verdict ~= nil then
    hs.status, hs.message = "Degraded", why.Recovered
  else
    hs.status = "Healthy"
  end
elseif is.Suspended == "True" then
  hs.status, hs.message = "Suspended", why.Suspended
end
return hs
