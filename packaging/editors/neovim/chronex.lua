-- Neovim: put this into your init.lua, or require it.
-- 0.11 and newer know vim.lsp.config; older ones start the client when a file of one of these kinds is opened.
local filetypes = { "toml", "yaml", "crontab", "systemd", "json", "python" }
local command = { "chronex", "lsp" }

-- Neovim 0.7 takes a .timer for something else, or for nothing at all.
vim.cmd([[autocmd BufRead,BufNewFile *.timer setfiletype systemd]])
vim.cmd([[autocmd BufRead,BufNewFile *.crontab,*.cron,*/cron.d/* setfiletype crontab]])

if vim.lsp.config then
  vim.lsp.config("chronex", { cmd = command, filetypes = filetypes, root_markers = { "chronex.toml", ".git" } })
  vim.lsp.enable("chronex")
  vim.lsp.inlay_hint.enable(true)
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
