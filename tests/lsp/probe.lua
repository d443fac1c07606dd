-- A real client: open a job file, take the diagnostics, a hover, the inlay hints, and apply the first quick fix.
-- Neovim 0.7 has neither vim.lsp.start nor inlay hints of its own, so both are asked for by hand.
local command = vim.fn.json_decode(vim.env.CHRONEX_LSP)
local result = {}
vim.cmd("edit " .. vim.env.CHRONEX_FILE)
local buffer = vim.api.nvim_get_current_buf()
local client_id = vim.lsp.start_client({ name = "chronex", cmd = command, root_dir = vim.fn.getcwd() })
vim.lsp.buf_attach_client(buffer, client_id)

local function wait(what, ready)
  local done = vim.wait(100000, ready, 20)  -- as long as the test waits for Neovim
  if not done then
    result.error = "waited in vain for " .. what
  end
  return done
end

local function ask(method, params)
  local answers = vim.lsp.buf_request_sync(buffer, method, params, 100000) or {}
  for _, answer in pairs(answers) do
    return answer.result
  end
end

local function codes()
  local found = {}
  for _, diagnostic in ipairs(vim.diagnostic.get(buffer)) do
    local code = diagnostic.code or (diagnostic.user_data and diagnostic.user_data.lsp and diagnostic.user_data.lsp.code)
    table.insert(found, { code = code, line = diagnostic.lnum + 1, column = diagnostic.col + 1 })
  end
  return found
end

if wait("diagnostics", function() return #vim.diagnostic.get(buffer) > 0 end) then
  result.before = codes()
  local document = vim.lsp.util.make_text_document_params(buffer)
  local last = vim.api.nvim_buf_line_count(buffer)
  local whole = { start = { line = 0, character = 0 }, ["end"] = { line = last, character = 0 } }
  local hover = ask("textDocument/hover", { textDocument = document, position = { line = 1, character = 14 } })
  result.hover = hover and hover.contents.value
  result.hints = {}
  for _, hint in ipairs(ask("textDocument/inlayHint", { textDocument = document, range = whole }) or {}) do
    table.insert(result.hints, hint.label)
  end
  local actions = ask("textDocument/codeAction", {
    textDocument = document, range = whole, context = { diagnostics = {}, only = { "quickfix" } },
  })
  local client = vim.lsp.get_client_by_id(client_id)
  vim.lsp.util.apply_workspace_edit(actions[1].edit, client.offset_encoding)
  wait("the fix to clear them", function() return #vim.diagnostic.get(buffer) == 0 end)
  result.after = codes()
  result.text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n")
end
vim.fn.writefile({ vim.fn.json_encode(result) }, vim.env.CHRONEX_RESULT)
