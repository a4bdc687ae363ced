local actions = {}
if obj.spec.suspend then
  actions["resume"] = { ["iconClass"] = "fa fa-fw fa-play" }
else
  actions["suspend"] = { ["iconClass"] = "fa fa-fw fa-pause" }
end
return actions
