-- Arguments: body (empty for a GET), cookies that end with the start of a refresh token (empty unless each request needs its own),
-- whether connections pause (empty if not).

function init(arguments)
  if arguments[1] ~= '' then
    wrk.method = 'POST'
    wrk.body = arguments[1]
  end
  if arguments[3] ~= '' then
    delay = function() return math.random(500, 1500) end
  end
  local cookies = arguments[2]
  if cookies == '' then return end
  local count = 0
  request = function()
    count = count + 1
    wrk.headers.cookie = cookies .. count
    return wrk.format()
  end
end

function done(summary, latency)
  local errors = summary.errors
  print(string.format(
    'RESULT {"requests":%d,"bytes":%d,"seconds":%f,"p50Ms":%f,"p99Ms":%f,"statusesAbove399":%d,"broken":%d}',
    summary.requests, summary.bytes, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
