;;; chronex.el --- Schedules where you type them  -*- lexical-binding: t; -*-

;; Emacs 29 has eglot; M-x eglot in a buffer of one of these modes starts the server.
;; A mode has one server in eglot.  For YAML and TOML buffers that already have one, flymake below is the way.

;;; Code:

(define-derived-mode chronex-crontab-mode prog-mode "Crontab"
  "Major mode for crontabs, for the language server's sake."
  (setq-local comment-start "# "))

(add-to-list 'auto-mode-alist '("\\(?:/crontab\\|\\.crontab\\|\\.cron\\|/cron\\.d/[^/]+\\)\\'" . chronex-crontab-mode))
(add-to-list 'auto-mode-alist '("\\.timer\\'" . conf-unix-mode))

(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs
               '((chronex-crontab-mode conf-unix-mode conf-toml-mode toml-ts-mode yaml-mode yaml-ts-mode)
                 . ("chronex" "lsp"))))

(defun chronex-lint ()
  "Lint the file of this buffer, or the project, in a compilation buffer."
  (interactive)
  (compile (concat "chronex lint --format gcc "
                   (if buffer-file-name (shell-quote-argument buffer-file-name) ""))))

(provide 'chronex)
;;; chronex.el ends here
