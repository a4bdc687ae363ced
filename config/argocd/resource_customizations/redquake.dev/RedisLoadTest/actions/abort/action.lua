obj.spec.abort = true
return obj
