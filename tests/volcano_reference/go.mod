module kpreempt.io/volcano-reference

go 1.26.0
