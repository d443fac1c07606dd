-- Neovim: put this into your init.lua, or require it.
-- 0.11 and newer know vim.lsp.config; older ones start the client when a file of one of these kinds is opened.
local filetypes = { "toml", "yaml", "crontab", "systemd", "json", "python" }
local command = { "chronex", "lsp" }

-- Neovim 0.7 takes a .timer for something else, or for nothing at all.
vim.cmd([[autocmd BufRead,BufNewFile *.timer,*.timer.d/*.conf setfiletype systemd]])
vim.cmd([[autocmd BufRead,BufNewFile *.crontab,*.cron,*/cron.d/* setfiletype crontab]])

-- The next run behind each schedule, in the buffers of this client alone; 0.10 and newer can show it.
local function show_hints(client_id, buffer)
  local client = vim.lsp.get_client_by_id(client_id)
  if vim.lsp.inlay_hint and client and client.name == "chronex" then
    vim.lsp.inlay_hint.enable(true, { bufnr = buffer })
  end
end

if vim.lsp.inlay_hint then
  vim.api.nvim_create_autocmd("LspAttach", {
    callback = function(event) show_hints(event.data.client_id, event.buf) end,
  })
end

if vim.lsp.config then
  vim.lsp.config("chronex", { cmd = command, filetypes = filetypes, root_markers = { "chronex.toml", ".git" } })
  vim.lsp.enable("chronex")
else
  local client_id
  vim.api.nvim_create_autocmd("FileType", {
    pattern = filetypes,
    callback = function(event)
      client_id = client_id or vim.lsp.start_client({ name = "chronex", cmd = command, root_dir = vim.fn.getcwd() })
      vim.lsp.buf_attach_client(event.buf, client_id)
    end,
  })
end
