-- wrk -s request.lua URL -- BYTES TOKEN UPSTREAM MODEL PAUSE: one multipart form with a file of BYTES, as OpenAI's
-- clients send it, PAUSE ms after the answer before it. Every system gets Portkey's two headers.
function init(args)
  local pause = tonumber(args[5])
  if pause > 0 then function delay() return pause end end
  local boundary = 'XXBOUNDARYXX'
  wrk.method = 'POST'
  wrk.headers['authorization'] = 'Bearer ' .. args[2]
  wrk.headers['content-type'] = 'multipart/form-data; boundary=' .. boundary
  wrk.headers['x-portkey-provider'] = 'openai'
  wrk.headers['x-portkey-custom-host'] = args[3] .. '/v1'
  local part = '--' .. boundary .. '\r\nContent-Disposition: form-data; name='
  wrk.body = part .. '"model"\r\n\r\n' .. args[4] .. '\r\n'
    .. part .. '"language"\r\n\r\nen\r\n'
    .. part .. '"file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n'
    .. string.rep('\1\2ab', args[1] / 4) .. '\r\n--' .. boundary .. '--\r\n'
end
