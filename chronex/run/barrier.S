# The start barrier as a program of 149 bytes, for Linux on x86-64: wait for one byte on descriptor 3, then become the command.
# spawn.py holds it assembled; tests/run/test_spawn.py assembles this file and compares.
#
#   argv: [0] its own name  [1] the directory, or ""  [2] the program  [3...] the program's own argv
#
# Without the byte (the daemon died) it ends and nothing has run. When the directory or the program is refused, the
# refusal goes back through descriptor 3, which closes by itself where the program takes over.

        .intel_syntax noprefix
        .text
        mov     rbx, rsp                # argc, argv..., 0, environment...
        sub     rsp, 16
        xor     eax, eax                # read(3, rsp, 1)
        mov     edi, 3
        mov     rsi, rsp
        mov     edx, 1
        syscall
        cmp     rax, 1
        jne     shut
        mov     eax, 72                 # fcntl(3, F_SETFD, FD_CLOEXEC)
        mov     edi, 3
        mov     esi, 2
        mov     edx, 1
        syscall
        mov     r12d, 1                 # step 1: chdir(argv[1])
        mov     rdi, [rbx + 16]
        cmp     byte ptr [rdi], 0
        je      become
        mov     eax, 80
        syscall
        test    rax, rax
        js      refused
become: mov     r12d, 2                 # step 2: execve(argv[2], argv + 3, environment)
        mov     rdi, [rbx + 24]
        lea     rsi, [rbx + 32]
        mov     rax, [rbx]
        lea     rdx, [rbx + rax * 8 + 16]
        mov     eax, 59
        syscall
refused:
        mov     [rsp], rax              # write(3, {-errno, step}, 16)
        mov     [rsp + 8], r12
        mov     eax, 1
        mov     edi, 3
        mov     rsi, rsp
        mov     edx, 16
        syscall
shut:   mov     edi, 125                # exit(125)
        mov     eax, 60
        syscall
